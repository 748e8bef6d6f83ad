// SPDX-License-Identifier: MIT
// Statements of Loop, Tile and Kernel IR: one variant of plain structs, immutable, with shared
// ownership; a level mask says which kinds a level knows and its verifier refuses the others.
//
// Loop level: what one kernel computes, element by element.
//   for %m: free in seq {
//     for %n: free in 4608 {
//       acc %sum: sum
//       for %k: contract in 3584 {
//         %sum <- (f32(@x[%m, %k]) * f32(@w[%n, %k]))
//       }
//       @y[%m, %n] = bf16((%sum + f32(@bias[%n])))
//     }
//   }
// Tile level: the same statements as a program of one block. Axes are split: `grid` loops are
// outermost, `serial` loops run one after another, and `local` loops cover the block's tile: their
// digits say which bits of the thread index and which registers hold each coordinate. Values that
// live across nests are in `local` (registers) or `shared` allocations. Masks are explicit guards.
// Kernel level: the same program for one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/buffer.h"
#include "compiler/ir/expr.h"
#include "compiler/ir/monoid.h"

namespace hackc::ir {

struct StmtNode;
using Stmt = std::shared_ptr<const StmtNode>;
using Block = std::vector<Stmt>;

// What a loop means. A contract axis is a reduce axis of a sum of products.
enum class AxisRole : uint8_t { kFree, kReduce, kContract };
HACKC_ENUM_NAMES(AxisRole, "free", "reduce", "contract")

// How a loop runs. Loop level knows only kSequential.
enum class LoopKind : uint8_t {
  kSequential,  // Loop level: no decision yet
  kGridX,
  kGridY,
  kGridZ,
  kSerial,  // one iteration after another, all threads together
  kLocal,   // Tile level: spread over threads and registers as `digits` say
  kUnroll,  // Kernel level: unrolled; indices of register arrays become constants
};
HACKC_ENUM_NAMES(LoopKind, "sequential", "grid_x", "grid_y", "grid_z", "serial", "local", "unroll")
constexpr bool IsGrid(LoopKind kind) {
  return kind == LoopKind::kGridX || kind == LoopKind::kGridY || kind == LoopKind::kGridZ;
}

// One factor of a local axis. coordinate = mixed radix of its digits, the first the most
// significant. kMatrix: the coordinates that one matrix instruction sums over; contract axes only.
struct Digit {
  enum class Kind : uint8_t { kThread, kRegister, kMatrix } kind = Kind::kRegister;
  int extent = 1;  // power of two for kThread
  int stride = 1;  // kThread: digit = (thread / stride) % extent; power of two
  bool operator==(const Digit&) const = default;
};
HACKC_ENUM_NAMES(Digit::Kind, "thread", "register", "matrix")

struct For {
  std::string axis;
  AxisRole role = AxisRole::kFree;
  LoopKind kind = LoopKind::kSequential;
  Expr extent;                // iterations; over symbols and outer axes
  std::vector<Digit> digits;  // kLocal only; the product of extents equals `extent`
  Block body;
};
HACKC_FIELDS(For, "for", axis, role, kind, extent, digits, body)

struct Let {
  std::string name;
  Expr value;
};
HACKC_FIELDS(Let, "let", name, value)

// Declares a reduction state at its identity. `extents` is empty for a scalar; otherwise one state
// for each coordinate (static extents), updated and read by index. Tile level: one dimension for
// each local axis that it depends on, spread over threads as `layout` says like a kLocal Alloc,
// read by Load always (also with no indices), and a Store may overwrite it.
struct Accumulator {
  std::string name;
  Monoid monoid = Monoid::kSum;
  std::vector<Expr> extents;
  std::vector<std::vector<Digit>> layout;
};
HACKC_FIELDS(Accumulator, "acc", name, monoid, extents, layout)

// Combines operands into a state. Reading the result is Var(name) for a scalar, Load(name, ...)
// otherwise. When `guard` is present and false, nothing happens.
struct Accumulate {
  std::string name;
  std::vector<Expr> indices;
  std::vector<Expr> operands;  // OperandCount(monoid) of them, float32
  Expr guard;
};
HACKC_FIELDS(Accumulate, "accumulate", name, indices, operands, guard)

// How a store moves its value. kCpAsync: value must be a plain global load and the target shared.
enum class CopyEngine : uint8_t { kRegisters, kCpAsync };
HACKC_ENUM_NAMES(CopyEngine, "registers", "cp_async")

// What a copy into shared memory tells the caches. kKeep: blocks beside this one read the same
// bytes.
enum class CacheHint : uint8_t { kNormal, kKeep };
HACKC_ENUM_NAMES(CacheHint, "normal", "keep")

// Writes one element of a buffer (global, local or shared). When `guard` is present and false,
// nothing.
struct Store {
  std::string buffer;
  std::vector<Expr> indices;
  Expr value;
  Expr guard;
  CopyEngine engine = CopyEngine::kRegisters;
  CacheHint cache = CacheHint::kNormal;
};
HACKC_FIELDS(Store, "store", buffer, indices, value, guard, engine, cache)

// ---- Tile level and below -----------------------------------------------------------------------
enum class MemorySpace : uint8_t { kLocal, kShared, kMbarrier };
HACKC_ENUM_NAMES(MemorySpace, "local", "shared", "mbarrier")

// A block's own memory. Lives from here to the end of the enclosing body. kLocal at Tile level: a
// tile spread over threads, whose layout is `layout` (one digit list for each dimension); at Kernel
// level: a register array of one thread (one dimension).
// kShared: row-major with `padding` extra elements at the end of each innermost row.
// kMbarrier: Kernel level; i64, one dimension: so many mbarriers in shared memory, which only
// statements on mbarriers touch.
struct Alloc {
  std::string name;
  DType dtype = DType::kF32;
  MemorySpace space = MemorySpace::kLocal;
  std::vector<int64_t> extents;
  std::vector<std::vector<Digit>> layout;
  int padding = 0;
  int alignment = 16;  // bytes, kShared
  // kShared: more than one makes a ring. The first dimension counts its slots; iteration i of the
  // loop that the allocation is in fills and reads slot i % slots, so that pipeline_copies may fill
  // ahead.
  int slots = 1;
};
HACKC_FIELDS(Alloc, "alloc", name, dtype, space, extents, layout, padding, alignment, slots)

// Tile level: the accumulations into local `name` so far are partial over the threads of the axis
// just summed; make every thread hold the total. `thread_mask` has the bits of the thread index
// summed over.
struct Combine {
  std::string name;
  Monoid monoid = Monoid::kSum;
  int thread_mask = 0;
};
HACKC_FIELDS(Combine, "combine", name, monoid, thread_mask)

// ---- Kernel level -------------------------------------------------------------------------------
struct If {
  Expr condition;
  Block then;
};
HACKC_FIELDS(If, "if", condition, then)

// Moves `width` consecutive elements between memory and a register array, or registers and memory.
// The address must be a multiple of width * element size. kVectorLoad writes zeros when guarded
// off.
struct VectorLoad {
  std::string target;
  Expr target_index;  // register array
  std::string source;
  DType dtype = DType::kF32;
  std::vector<Expr> indices;
  int width = 1;
  Expr guard;
};
HACKC_FIELDS(VectorLoad, "vector_load", target, target_index, source, dtype, indices, width, guard)
struct VectorStore {
  std::string target;
  std::vector<Expr> indices;
  std::string source;
  Expr source_index;  // register array
  int width = 1;
  Expr guard;
};
HACKC_FIELDS(VectorStore, "vector_store", target, indices, source, source_index, width, guard)

struct Barrier {};  // every thread of the block
HACKC_FIELDS(Barrier, "barrier")

// cp.async: `bytes` (4, 8 or 16) from global to shared; zero-fills when guarded off. Fewer than 16
// go through L1 always, 16 when they are to be kept.
struct AsyncCopy {
  std::string target;
  std::vector<Expr> target_indices;
  std::string source;
  std::vector<Expr> source_indices;
  int bytes = 16;
  Expr guard;
  CacheHint cache = CacheHint::kNormal;
};
HACKC_FIELDS(AsyncCopy, "async_copy", target, target_indices, source, source_indices, bytes, guard,
             cache)
struct AsyncCommit {};
HACKC_FIELDS(AsyncCommit, "async_commit")
struct AsyncWait {  // until at most `pending` groups of this thread are in flight
  int pending = 0;
};
HACKC_FIELDS(AsyncWait, "async_wait", pending)

// ldmatrix: `count` 8x8 matrices of 16-bit elements from shared memory into consecutive 32-bit
// registers of `target` starting at target_index; this lane's row address is @source[indices].
struct LoadMatrix {
  std::string target;
  Expr target_index;
  std::string source;
  std::vector<Expr> indices;
  int count = 4;
  bool transposed = false;
};
HACKC_FIELDS(LoadMatrix, "load_matrix", target, target_index, source, indices, count, transposed)

// mma.sync of one warp: accumulator += a * b on register arrays in the fragment layout of the PTX
// manual.
enum class MmaShape : uint8_t { kM16N8K16, kM16N8K8 };
HACKC_ENUM_NAMES(MmaShape, "m16n8k16", "m16n8k8")
struct Mma {
  MmaShape shape = MmaShape::kM16N8K16;
  DType dtype = DType::kBF16;  // of a and b: kBF16 or kF16 (k16), kF32 read as tf32 (k8)
  std::string accumulator;
  Expr accumulator_index;  // 4 float32
  std::string a;
  Expr a_index;  // 8 elements (k16) or 4 (k8)
  std::string b;
  Expr b_index;  // 4 elements (k16) or 2 (k8)
};
HACKC_FIELDS(Mma, "mma", shape, dtype, accumulator, accumulator_index, a, a_index, b, b_index)

// buffer[indices] += value, in one step that others cannot come between; float32, global or shared.
struct AtomicAdd {
  std::string buffer;
  std::vector<Expr> indices;
  Expr value;
  Expr guard;
};
HACKC_FIELDS(AtomicAdd, "atomic_add", buffer, indices, value, guard)

// ---- Kernel level, sm_90a: warps with jobs of their own, and units that work beside them --------
//   alloc @full: i64 mbarrier[2]
//   mbarrier_init {barrier = @full, count = 1}
//   barrier
//   role first 4 warps 1 {                    # the producer
//     if (thread.x == 128) {
//       mbarrier_arrive {barrier = @full, index = %slot, bytes = 8192}
//       bulk_load {target = @x_tile, target_indices = [%slot, 0, 0], map = @x_map,
//                  coordinates = [0, %k],
//                  barrier = @full, barrier_index = %slot}
//     }
//   }
//   role first 0 warps 4 { mbarrier_wait {barrier = @full, index = %slot, parity = %parity} ... }

// The body, for warps first to first + warps - 1 of the block only.
struct Role {
  int first = 0;
  int warps = 1;
  int registers = 0;  // of each thread from here on (setmaxnreg); 0: as launched
  Block body;
};
HACKC_FIELDS(Role, "role", first, warps, registers, body)
struct NamedBarrier {  // bar.sync: until `threads` threads are at a barrier of this id
  int id = 1;          // 1 to 15
  int threads = 128;
};
HACKC_FIELDS(NamedBarrier, "named_barrier", id, threads)

// An mbarrier counts arrivals and bytes of a phase; when both have come the next phase begins.
struct MbarrierInit {  // all of @barrier, by thread 0; others may use them after a block barrier
  std::string barrier;
  int count = 1;  // arrivals of one phase
};
HACKC_FIELDS(MbarrierInit, "mbarrier_init", barrier, count)
struct MbarrierArrive {  // of each thread that gets here; `bytes` more are expected in this phase
  std::string barrier;
  Expr index;
  int bytes = 0;
};
HACKC_FIELDS(MbarrierArrive, "mbarrier_arrive", barrier, index, bytes)
struct MbarrierWait {  // until the phase of this parity (0 or 1) is over: the first phase is 0
  std::string barrier;
  Expr index;
  Expr parity;
};
HACKC_FIELDS(MbarrierWait, "mbarrier_wait", barrier, index, parity)

// Writes of this thread, and those that it has seen, before reads of bulk copies and wgmma.
struct ProxyFence {};
HACKC_FIELDS(ProxyFence, "proxy_fence")
// A box of tensor map `map` into shared memory, dense from @target[target_indices], swizzled as the
// map says; zeros where coordinates are outside the tensor. Its bytes arrive at the mbarrier. One
// thread issues it.
struct BulkLoad {
  std::string target;
  std::vector<Expr> target_indices;
  std::string map;
  std::vector<Expr> coordinates;  // as the map's dims; may lie outside
  std::string barrier;
  Expr barrier_index;
};
HACKC_FIELDS(BulkLoad, "bulk_load", target, target_indices, map, coordinates, barrier,
             barrier_index)
// The other way; what is outside is not written. Groups are those of the issuing thread.
struct BulkStore {
  std::string map;
  std::vector<Expr> coordinates;
  std::string source;
  std::vector<Expr> source_indices;
};
HACKC_FIELDS(BulkStore, "bulk_store", map, coordinates, source, source_indices)
struct BulkCommit {};
HACKC_FIELDS(BulkCommit, "bulk_commit")
struct BulkWait {  // until at most `pending` groups are in flight
  int pending = 0;
  bool read = false;  // until they have read their source
};
HACKC_FIELDS(BulkWait, "bulk_wait", pending, read)

// wgmma.mma_async of a warpgroup: accumulator (64 x n) += a (64 x k) * b (k x n), where k is 16, or
// 8 for float32 read as tf32. b, and a unless it is a register array, lie in shared memory as a
// descriptor says:
// from the first element, with byte strides between groups and the swizzle (ir/wgmma_layout.h).
enum class Major : uint8_t { kK, kMN };  // which index is contiguous
HACKC_ENUM_NAMES(Major, "k", "mn")
struct Wgmma {
  int n = 8;  // multiple of 8 up to 256
  DType dtype = DType::kBF16;
  std::string accumulator;
  // n / 2 float32; element i of a thread as in Mma, 8 columns after 8 columns.
  Expr accumulator_index;
  Expr reset;  // present and true: the accumulator starts from zero
  std::string a;
  std::vector<Expr> a_indices;  // registers: 8 elements, or 4 for tf32, as in Mma
  Major a_major = Major::kK;
  int a_leading = 0, a_stride = 0, a_swizzle = 0;
  std::string b;
  std::vector<Expr> b_indices;
  Major b_major = Major::kK;
  int b_leading = 0, b_stride = 0, b_swizzle = 0;
};
HACKC_FIELDS(Wgmma, "wgmma", n, dtype, accumulator, accumulator_index, reset, a, a_indices, a_major,
             a_leading, a_stride, a_swizzle, b, b_indices, b_major, b_leading, b_stride, b_swizzle)
struct WgmmaFence {};  // registers that were touched, before the next wgmma
HACKC_FIELDS(WgmmaFence, "wgmma_fence")
struct WgmmaCommit {};
HACKC_FIELDS(WgmmaCommit, "wgmma_commit")
struct WgmmaWait {
  int pending = 0;
};
HACKC_FIELDS(WgmmaWait, "wgmma_wait", pending)

using StmtVariant =
    std::variant<For, Let, Accumulator, Accumulate, Store, Alloc, Combine, If, VectorLoad,
                 VectorStore, Barrier, AsyncCopy, AsyncCommit, AsyncWait, LoadMatrix, Mma,
                 AtomicAdd, Role, NamedBarrier, MbarrierInit, MbarrierArrive, MbarrierWait,
                 ProxyFence, BulkLoad, BulkStore, BulkCommit, BulkWait, Wgmma, WgmmaFence,
                 WgmmaCommit, WgmmaWait>;

struct StmtNode {
  StmtVariant node;
  SourceLine line = {};
};

Stmt MakeStmt(auto node) {
  return std::make_shared<const StmtNode>(StmtNode{StmtVariant(std::move(node))});
}

template <typename T>
const T* As(const Stmt& s) {
  return s ? std::get_if<T>(&s->node) : nullptr;
}

// ---- functions: one kernel at each level --------------------------------------------------------
struct Function {
  std::string name;      // what it is: "qkv_linear"
  std::string computes;  // one line for people
  std::vector<SymbolDecl> symbols;
  std::vector<BufferDecl> buffers;
  Block body;
  SourceLine line = {};  // of the schedule or launch
};
HACKC_FIELDS(Function, "fn", name, computes, symbols, buffers, body)

struct LoopFn {
  Function fn;
};

// ---- Tile level: the schedule, everything that a tuner may turn ---------------------------------
// How one Loop-level axis is cut, from the outside in: outer (grid or serial) of ceil(extent /
// tile), serial steps inside one tile, and the digits of the local part: tile = steps * product of
// the digits' extents, coordinate = outer * tile + step * (tile / steps) + local. What is staged is
// staged for a whole tile.
struct AxisSchedule {
  std::string axis;
  LoopKind outer = LoopKind::kSerial;  // kGridX/Y/Z or kSerial
  int steps = 1;
  std::vector<Digit> digits;
};
HACKC_FIELDS(AxisSchedule, "axis", axis, outer, steps, digits)

// A load kept in shared memory, filled once for each iteration of the outer part of `axis`.
struct StageSchedule {
  std::string buffer;
  std::string axis;
  int depth = 1;  // slots; more than one overlaps the copy with the work on earlier slots
  CopyEngine engine = CopyEngine::kRegisters;
  int padding = 0;  // elements
  CacheHint cache = CacheHint::kNormal;
};
HACKC_FIELDS(StageSchedule, "stage", buffer, axis, depth, engine, padding, cache)

enum class MatrixInstruction : uint8_t { kFma, kMma, kWgmma };
HACKC_ENUM_NAMES(MatrixInstruction, "fma", "mma", "wgmma")
// kSplit3: float32 from three products of parts.
enum class PrecisionRecipe : uint8_t { kNative, kSplit3 };
HACKC_ENUM_NAMES(PrecisionRecipe, "native", "split3")

struct Schedule {
  int threads = 128;  // power of two
  std::vector<AxisSchedule> axes;
  std::vector<StageSchedule> stages;
  MatrixInstruction instruction = MatrixInstruction::kFma;
  PrecisionRecipe recipe = PrecisionRecipe::kNative;
  int cluster = 1;
  int split_reduce = 1;       // blocks that share one reduction
  int min_blocks_per_sm = 1;  // launch bound

  const AxisSchedule* Find(std::string_view axis) const {  // null where it is not listed
    return FindBy(axes, &AxisSchedule::axis, axis);
  }
};
HACKC_FIELDS(Schedule, "schedule", threads, axes, stages, instruction, recipe, cluster,
             split_reduce, min_blocks_per_sm)

struct TileFn {
  Function fn;
  Schedule schedule;
};

// A parameter that bulk copies take: how one buffer is seen, and in boxes of what size. Outermost
// first.
struct BulkMap {
  std::string name;
  std::string buffer;
  std::vector<Expr> dims;  // 1 to 5, over symbols
  // Elements, over symbols; one for each dim but the innermost, which is dense.
  std::vector<Expr> strides;
  std::vector<int> box;
  int swizzle = 0;  // bytes: 0, 32, 64 or 128
  SourceLine line = {};
};
HACKC_FIELDS(BulkMap, "tensor_map", name, buffer, dims, strides, box, swizzle)

struct KernelFn {
  Function fn;
  std::vector<Expr> grid;  // three, over symbols
  int threads = 128;
  int cluster = 1;
  int min_blocks_per_sm = 1;
  std::vector<BulkMap> maps;
};

// The last level: text.
struct CudaFn {
  std::string name;
  std::string entry;
  std::string text;
};

}  // namespace hackc::ir
