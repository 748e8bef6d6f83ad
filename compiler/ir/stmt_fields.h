// SPDX-License-Identifier: MIT
// The fields of every statement and of the schedule, each named once; see fields.h.
#pragma once

#include "compiler/ir/fields.h"
#include "compiler/ir/stmt.h"

namespace hackc::ir {

HACKC_ENUM_NAMES(Access, "read", "write", "readwrite")
HACKC_ENUM_NAMES(AxisRole, "free", "reduce", "contract")
HACKC_ENUM_NAMES(LoopKind, "sequential", "grid_x", "grid_y", "grid_z", "serial", "local", "unroll")
HACKC_ENUM_NAMES(Digit::Kind, "thread", "register", "matrix")
HACKC_ENUM_NAMES(MemorySpace, "local", "shared", "mbarrier")
HACKC_ENUM_NAMES(CopyEngine, "registers", "cp_async")
HACKC_ENUM_NAMES(MmaShape, "m16n8k16", "m16n8k8")
HACKC_ENUM_NAMES(Major, "k", "mn")
HACKC_ENUM_NAMES(MatrixInstruction, "fma", "mma", "wgmma")
HACKC_ENUM_NAMES(PrecisionRecipe, "native", "split3")

HACKC_FIELDS(For, "for", axis, role, kind, extent, digits, body)
HACKC_FIELDS(Let, "let", name, value)
HACKC_FIELDS(Accumulator, "acc", name, monoid, extents, layout)
HACKC_FIELDS(Accumulate, "accumulate", name, indices, operands, guard)
HACKC_FIELDS(Store, "store", buffer, indices, value, guard, engine)
HACKC_FIELDS(Alloc, "alloc", name, dtype, space, extents, layout, padding, alignment, slots)
HACKC_FIELDS(Combine, "combine", name, monoid, thread_mask)
HACKC_FIELDS(If, "if", condition, then)
HACKC_FIELDS(VectorLoad, "vector_load", target, target_index, source, dtype, indices, width, guard)
HACKC_FIELDS(VectorStore, "vector_store", target, indices, source, source_index, width, guard)
HACKC_FIELDS(Barrier, "barrier")
HACKC_FIELDS(AsyncCopy, "async_copy", target, target_indices, source, source_indices, bytes, guard)
HACKC_FIELDS(AsyncCommit, "async_commit")
HACKC_FIELDS(AsyncWait, "async_wait", pending)
HACKC_FIELDS(LoadMatrix, "load_matrix", target, target_index, source, indices, count, transposed)
HACKC_FIELDS(Mma, "mma", shape, dtype, accumulator, accumulator_index, a, a_index, b, b_index)
HACKC_FIELDS(AtomicAdd, "atomic_add", buffer, indices, value, guard)
HACKC_FIELDS(Role, "role", first, warps, registers, body)
HACKC_FIELDS(NamedBarrier, "named_barrier", id, threads)
HACKC_FIELDS(MbarrierInit, "mbarrier_init", barrier, count)
HACKC_FIELDS(MbarrierArrive, "mbarrier_arrive", barrier, index, bytes)
HACKC_FIELDS(MbarrierWait, "mbarrier_wait", barrier, index, parity)
HACKC_FIELDS(ProxyFence, "proxy_fence")
HACKC_FIELDS(BulkLoad, "bulk_load", target, target_indices, map, coordinates, barrier,
             barrier_index)
HACKC_FIELDS(BulkStore, "bulk_store", map, coordinates, source, source_indices)
HACKC_FIELDS(BulkCommit, "bulk_commit")
HACKC_FIELDS(BulkWait, "bulk_wait", pending, read)
HACKC_FIELDS(Wgmma, "wgmma", n, dtype, accumulator, accumulator_index, reset, a, a_indices, a_major,
             a_leading, a_stride, a_swizzle, b, b_indices, b_major, b_leading, b_stride, b_swizzle)
HACKC_FIELDS(WgmmaFence, "wgmma_fence")
HACKC_FIELDS(WgmmaCommit, "wgmma_commit")
HACKC_FIELDS(WgmmaWait, "wgmma_wait", pending)
HACKC_FIELDS(BulkMap, "tensor_map", name, buffer, dims, strides, box, swizzle)

HACKC_FIELDS(BufferDecl, "buffer", name, dtype, shape, access)
HACKC_FIELDS(Function, "fn", name, computes, symbols, buffers, body)
HACKC_FIELDS(AxisSchedule, "axis", axis, outer, steps, digits)
HACKC_FIELDS(StageSchedule, "stage", buffer, axis, depth, engine, padding)
HACKC_FIELDS(Schedule, "schedule", threads, axes, stages, instruction, recipe, cluster,
             split_reduce, min_blocks_per_sm)

}  // namespace hackc::ir
