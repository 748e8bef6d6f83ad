// SPDX-License-Identifier: MIT
// Verifies Kernel IR: refuses what a GPU would hang, fault or race on. The rules of stmt_verify.h
// (S1 to S14) and
//
//   K1 launch     threads are a multiple of 32 within the limit; grid has three i32 extents over
//                 symbols, positive, y and z at most 65535; cluster is within the limit and divides
//                 the grid's x; min_blocks_per_sm blocks (1 to 32) have no more threads than the
//                 multiprocessor
//   K2 form       loops have no digits, an unrolled one has a constant extent from 1 to 1024;
//                 stores go through registers, and have a hint to the caches only to copy into
//                 shared memory
//   K3 registers  a register array has one dimension, at most 1024 elements, and neither layout nor
//                 padding; its indices are constant once loops are unrolled
//   K4 shared     shared arrays have no layout, padding from 0 to 1024, an alignment that is a
//                 power of two up to 1024 and holds an element, less than 2^30 elements; the slots
//                 of a ring are counted by the first dimension; all together fit the limit
//   K5 uniform    a barrier is reached by all threads of the block: the conditions and extents
//                 round it are the same for all
//   K6 warp       load_matrix, mma and shuffles are reached by whole warps, also past guards
//   K7 vector     a vector moves 2, 4, 8 or 16 bytes between a register array and memory of its
//                 dtype, both at addresses that are provably multiples of its size
//   K8 async      a copy moves 4, 8 or 16 bytes from a `read` buffer into shared memory of its
//                 dtype, both aligned; it is committed and then waited for, later or in the next
//                 round of a loop round it; a slot is read only when the copies into it have been
//                 waited for (copies_in_flight.cc)
//   K9 matrix     load_matrix: 1, 2 or 4 matrices of 16-bit elements, from aligned rows of shared
//                 memory into registers of the same dtype, at an even index
//   K10 mma       shape and dtype go together; fragments are register arrays of the operands'
//                 dtype and begin at whole registers, the accumulator is f32
//   K11 role      a role is no part of a loop, a branch or another role; its warps are in the
//                 block; registers are a multiple of 8 from 24 to 256 and for whole warpgroups, and
//                 with what a launch gives the other warps no more than 65536 / min_blocks_per_sm
//   K12 mbarrier  mbarriers are an i64 array of one dimension, initialised once outside loops,
//                 branches and roles, with a block barrier before their first use; parities are
//                 provably 0 or 1
//   K13 arrive    who waits or arrives follows from the thread index; something arrives at every
//                 mbarrier that is waited for, and as many threads arrive as its init counts, each
//                 once in a phase
//   K14 bytes     an arrive expects as many bytes as the bulk loads of its block bring (whole
//                 boxes, at edges too), and every bulk load has such an arrive
//   K15 release   who waits at an mbarrier and then fills memory again waits for an arrival from
//                 every warpgroup that waits for what was there
//   K16 map       a tensor map has 1 to 5 dims, is provably within its buffer, strides in multiples
//                 of 16 bytes, box extents from 1 to 256, rows of a multiple of 16 bytes, or as
//                 long as the swizzle (0, 32, 64 or 128 bytes)
//   K17 bulk      one thread issues a bulk copy, between a box of a tensor map and shared memory of
//                 its dtype that provably holds it, aligned to 128 bytes or 8 swizzles; bulk stores
//                 are then committed and then waited for, each beside or round what was before,
//                 until none is pending
//   K18 warpgroup statements on wgmma are reached by whole warpgroups
//   K19 wgmma     n is a multiple of 8 up to 256; operands are bf16, f16 or f32 (only contiguous in
//                 k), of their registers or provably within their shared memory, with a pattern of
//                 the swizzle that starts where the operand does; accumulators are f32 registers
//   K20 named     named barriers have ids 1 to 15 and are reached by as many threads as they say
//   K21 atomic    atomic_add is of f32 in global or shared memory
//   The kinds (S6) are all but acc, accumulate and combine; loops are serial or unrolled.
//   Not checked: races (the interpreter finds them); register pressure (the toolchain reports it).
//
// Thread safety: a pure function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/rule.h"
#include "compiler/ir/stmt.h"

namespace hackc::ir {

// Of the target; the defaults are the largest of the archs that hackc knows.
struct KernelLimits {
  int max_threads = 1024;
  int threads_per_multiprocessor = 2048;
  int64_t shared_bytes = 232448;
  int max_cluster = 8;
};

inline constexpr auto kKernelRules =
    Rules('K', {"launch",  "form",   "registers", "shared",    "uniform",  "warp",   "vector",
                "async",   "matrix", "mma",       "role",      "mbarrier", "arrive", "bytes",
                "release", "map",    "bulk",      "warpgroup", "wgmma",    "named",  "atomic"});

// All errors, as ErrorText of rule.h writes them; empty when the kernel is good.
std::vector<std::string> VerifyKernel(const KernelFn& kernel, const KernelLimits& limits = {});

}  // namespace hackc::ir
