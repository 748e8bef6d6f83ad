// SPDX-License-Identifier: MIT
// Each rule of the Loop, Tile and Kernel verifiers, broken alone.
#include <string>
#include <vector>

#include "compiler/ir/kernel_verify.h"
#include "compiler/ir/loop_verify.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/ir/tile_verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hackc::ir {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> Loop(const std::string& body) {
  auto fn = ParseLoop(
      "hackc loop 1\nfn f \"\" {\n symbol n in 1..64\n read @x: f32[n, 8]\n read @ids: i32[n]\n"
      " write @y: f32[n, 8]\n" +
      body + "\n}");
  EXPECT_TRUE(fn.ok()) << fn.status();
  return fn.ok() ? VerifyLoop(*fn) : std::vector<std::string>{"does not parse"};
}

std::vector<std::string> Tile(const std::string& body,
                              const std::string& schedule = "threads = 64") {
  auto fn = ParseTile(
      "hackc tile 1\nfn f \"\" {\n symbol n in 1..64\n read @x: f32[n, 8]\n write @y: f32[n, 8]\n"
      " schedule {" +
      schedule + "}\n" + body + "\n}");
  EXPECT_TRUE(fn.ok()) << fn.status();
  return fn.ok() ? VerifyTile(*fn) : std::vector<std::string>{"does not parse"};
}

std::vector<std::string> Kernel(const std::string& body,
                                const std::string& launch = "grid = [n, 1, 1], threads = 64") {
  auto fn = ParseKernel(
      "hackc kernel 1\nfn k \"\" {\n symbol n in 1..64\n read @x: f32[n, 64]\n read @h: bf16[n, "
      "64]\n"
      " read @odd: f32[n, 63]\n write @y: f32[n, 64]\n launch {" +
      launch + "}\n" + body + "\n}");
  EXPECT_TRUE(fn.ok()) << fn.status();
  return fn.ok() ? VerifyKernel(*fn) : std::vector<std::string>{"does not parse"};
}

// ---- rules of all levels
// ------------------------------------------------------------------------------------

constexpr char kGoodLoop[] = R"(for %m: free in n {
  for %c: free in 8 {
    acc %s: sum
    for %k: reduce in (%m + 1) { %s <- @x[%k, %c] }
    let %q = ((%m * 8) + %c)
    @y[(%q // 8), (%q % 8)] = (%s + @x[max(min(@ids[%m], (n - 1)), 0), %c])
  }
})";

TEST(StmtVerify, GoodLoopHasNoErrors) { EXPECT_THAT(Loop(kGoodLoop), IsEmpty()); }

TEST(StmtVerify, Name) {
  LoopFn fn;
  fn.fn.name = "a b";
  EXPECT_THAT(VerifyLoop(fn), ElementsAre("loop a b: \"a b\" is not a name [name]"));
}
TEST(StmtVerify, Unique) {
  EXPECT_THAT(Loop("for %m: free in n { } for %m: free in n { }"),
              ElementsAre("loop f / for %m: `m` is defined twice [unique]"));
  EXPECT_THAT(Loop("for %x: free in n { }"),
              ElementsAre("loop f / for %x: `x` is defined twice [unique]"));
}
TEST(StmtVerify, Defined) {
  // The parser refuses these, so they are built.
  LoopFn fn = *ParseLoop("hackc loop 1\nfn f \"\" { write @y: f32[8] }");
  fn.fn.body = {MakeStmt(Store{"y", {Axis("m")}, FloatLit(1)}),
                MakeStmt(Store{"z", {IntLit(0)}, FloatLit(1)}),
                MakeStmt(Accumulate{"s", {}, {FloatLit(1)}})};
  EXPECT_THAT(VerifyLoop(fn), Contains("loop f / store @y: %m is not a value here [defined]"));
  EXPECT_THAT(VerifyLoop(fn), Contains("loop f / store @z: @z is not a buffer here [defined]"));
  EXPECT_THAT(VerifyLoop(fn),
              Contains("loop f / accumulate %s: %s is not an accumulator here [defined]"));
  // Out of the body that holds it.
  fn.fn.body = {MakeStmt(For{"m", AxisRole::kFree, LoopKind::kSequential, IntLit(8), {}, {}}),
                MakeStmt(Store{"y", {Axis("m")}, FloatLit(1)})};
  EXPECT_THAT(VerifyLoop(fn), Contains("loop f / store @y: %m is not a value here [defined]"));
  fn.fn.body = {MakeStmt(Store{"y", {MakeSymbol("n")}, FloatLit(1)})};
  EXPECT_THAT(VerifyLoop(fn), Contains("loop f / store @y: symbol n is not declared [defined]"));
}
TEST(StmtVerify, Symbol) {
  LoopFn fn;
  fn.fn.name = "f";
  fn.fn.symbols = {{"n", 5, 4}};
  EXPECT_THAT(VerifyLoop(fn),
              ElementsAre("loop f: symbol n in 5..4, expected 0 <= min <= max < 2^31 [symbol]"));
}
TEST(StmtVerify, Shape) {
  auto fn = ParseLoop("hackc loop 1\nfn f \"\" { symbol n in 0..4 write @y: f32[(n - 1)] }");
  ASSERT_TRUE(fn.ok()) << fn.status();
  EXPECT_THAT(VerifyLoop(*fn),
              ElementsAre("loop f: @y: extent `(n - 1)` is not positive over symbols [shape]"));
  EXPECT_THAT(Tile("alloc @t: f32 local[0]"),
              ElementsAre(HasSubstr("extent 0, expected 1 to 2^24 [shape]")));
  EXPECT_THAT(Loop("acc %s: sum[n]"),
              ElementsAre(HasSubstr("extent `n` is not a positive constant [shape]")));
}
TEST(StmtVerify, Kind) {
  EXPECT_THAT(Loop("barrier"),
              ElementsAre("loop f / barrier: a loop function holds no `barrier` [kind]"));
  EXPECT_THAT(Loop("for %m: free grid_x in n { }"),
              ElementsAre(HasSubstr("a loop function holds no grid_x loop [kind]")));
  EXPECT_THAT(Loop("@y[0, 0] = f32(thread.x)"),
              ElementsAre(HasSubstr("`thread.x` below Kernel level only [kind]")));
  EXPECT_THAT(Loop("@y[0, 0] = shuffle_xor(1.0, 1)"),
              ElementsAre(HasSubstr("`shuffle_xor(1.0, 1)` below Kernel level only [kind]")));
  EXPECT_THAT(Tile("barrier"), ElementsAre(HasSubstr("a tile function holds no `barrier` [kind]")));
  EXPECT_THAT(Kernel("combine {name = @y, monoid = sum, thread_mask = 1}"),
              ElementsAre(HasSubstr("a kernel function holds no `combine` [kind]")));
  EXPECT_THAT(Kernel("for %m: free local in 4 { }"),
              ElementsAre(HasSubstr("holds no local loop [kind]")));
}
TEST(StmtVerify, Extent) {
  EXPECT_THAT(Loop("for %m: free in @ids[0] { }"),
              ElementsAre(HasSubstr("extent `@ids[0]` reads memory [extent]")));
}
TEST(StmtVerify, Dtype) {
  EXPECT_THAT(Loop("@y[0, 0] = 1"),
              ElementsAre("loop f / store @y: the value `1` is i32, expected f32 [dtype]"));
  EXPECT_THAT(Loop("acc %s: sum %s <- 1"),
              ElementsAre(HasSubstr("the operand `1` is i32, expected f32 [dtype]")));
  LoopFn fn = *ParseLoop("hackc loop 1\nfn f \"\" { read @x: f32[8] write @y: f32[8] }");
  fn.fn.body = {MakeStmt(
      Store{"y", {IntLit(0)}, MakeCast(DType::kF32, MakeLoad("x", DType::kBF16, {IntLit(0)}))})};
  EXPECT_THAT(VerifyLoop(fn), ElementsAre("loop f / store @y: @x is f32, loaded as bf16 [dtype]"));
}
TEST(StmtVerify, Rank) {
  EXPECT_THAT(Loop("@y[0] = 1.0"),
              ElementsAre("loop f / store @y: @y: index rank 1, buffer rank 2 [rank]"));
}
TEST(StmtVerify, Access) {
  EXPECT_THAT(Loop("@x[0, 0] = 1.0"),
              ElementsAre(HasSubstr("@x is written but declared `read` [access]")));
  EXPECT_THAT(Loop("@y[0, 0] = @y[0, 1]"),
              ElementsAre(HasSubstr("@y is read but declared `write` [access]")));
}
TEST(StmtVerify, Operands) {
  EXPECT_THAT(Loop("acc %s: softmax_sum %s <- 1.0"),
              ElementsAre(HasSubstr("softmax_sum takes 2 operands, got 1 [operands]")));
}
TEST(StmtVerify, Depth) {
  Expr deep = FloatLit(1);
  for (int i = 0; i < 200; ++i) deep = MakeUnary(UnaryOp::kExp, deep);
  LoopFn fn = *ParseLoop("hackc loop 1\nfn f \"\" { write @y: f32[8] }");
  fn.fn.body = {MakeStmt(Store{"y", {IntLit(0)}, deep})};
  EXPECT_THAT(VerifyLoop(fn),
              ElementsAre(HasSubstr("the value nests more than 128 levels [depth]")));
  Block nest;
  for (int i = 0; i < 100; ++i) {
    nest = {MakeStmt(
        For{"m" + std::to_string(i), AxisRole::kFree, LoopKind::kSequential, IntLit(2), {}, nest})};
  }
  fn.fn.body = nest;
  EXPECT_THAT(VerifyLoop(fn),
              ElementsAre(HasSubstr("statements nest more than 64 levels [depth]")));
}

TEST(StmtVerify, BoundsUnderExtentsGuardsAndConditions) {
  EXPECT_THAT(Loop("for %m: free in (n + 1) { @y[%m, 0] = 1.0 }"),
              ElementsAre("loop f / for %m / store @y: @y: index `%m` of dimension 0 is not "
                          "provably within 0..n [bounds]"));
  EXPECT_THAT(Loop("for %m: free in (n + 1) { @y[%m, 0] = 1.0 when (%m < n) }"), IsEmpty());
  EXPECT_THAT(Loop("for %m: free in (n + 1) { @y[%m, 0] = 1.0 when (%m <= n) }"),
              ElementsAre(HasSubstr("[bounds]")));
  EXPECT_THAT(Loop("for %m: free in n { @y[%m, 0] = @x[(%m - 1), 0] }"),
              ElementsAre(HasSubstr("index `(%m - 1)`")));
  EXPECT_THAT(Loop("for %m: free in n { @y[%m, 0] = @x[(%m - 1), 0 if (1 <= %m)] }"), IsEmpty());
  EXPECT_THAT(Loop("for %m: free in n { @y[%m, 0] = select((%m == 0), 0.0, @x[(%m - 1), 0]) }"),
              ElementsAre(HasSubstr("[bounds]")));  // %m != 0 is not taken as a bound
  EXPECT_THAT(Loop("for %m: free in n { @y[%m, 0] = select((%m < 1), 0.0, @x[(%m - 1), 0]) }"),
              IsEmpty());
  EXPECT_THAT(Loop("for %m: free in n { @y[%m, 0] = select(((%m < (n - 1)) && true), @x[(%m + 1), "
                   "0], 0.0) }"),
              IsEmpty());
  EXPECT_THAT(Loop("for %m: free in n { @y[%m, 8] = 1.0 }"), ElementsAre(HasSubstr("dimension 1")));
  EXPECT_THAT(Loop("@y[@ids[0], 0] = 1.0"), ElementsAre(HasSubstr("[bounds]")));
  // A guard of an outer statement ends with it.
  EXPECT_THAT(Loop("for %m: free in (n + 1) { @y[%m, 0] = 1.0 when (%m < n) @y[%m, 1] = 1.0 }"),
              ElementsAre(HasSubstr("[bounds]")));
}

TEST(StmtVerify, BoundsOfBlockIndicesFollowTheGrid) {
  const std::string launch = "grid = [(((n + 7) // 8) * 4), 1, 1], threads = 64";
  const std::string row = "((((block.x // 4) % ((n + 7) // 8)) * 8) + (thread.x // 8))";
  EXPECT_THAT(
      Kernel("@y[" + row + ", (((block.x % 4) * 8) + (thread.x % 8))] = 1.0 when (" + row + " < n)",
             launch),
      IsEmpty());
  EXPECT_THAT(
      Kernel("@y[" + row + ", (((block.x % 9) * 8) + (thread.x % 8))] = 1.0 when (" + row + " < n)",
             launch),
      ElementsAre(HasSubstr("[bounds]")));
  EXPECT_THAT(Kernel("@y[" + row + ", 0] = 1.0", launch), ElementsAre(HasSubstr("[bounds]")));
}

// ---- Loop level
// ---------------------------------------------------------------------------------------------

TEST(LoopVerify, EngineAndLayout) {
  EXPECT_THAT(Loop("@y[0, 0] = 1.0 via cp_async"),
              ElementsAre(HasSubstr("chosen at Tile level [engine]")));
  EXPECT_THAT(Loop("acc %s: sum[4] layout [[register(4)]]"),
              ElementsAre(HasSubstr("no layout at Loop level [extent]")));
  EXPECT_THAT(Loop("for %m: free [register(4)] in 4 { }"),
              ElementsAre(HasSubstr("has no digits [kind]")));
}

// ---- Tile level
// ---------------------------------------------------------------------------------------------

constexpr char kGoodTile[] = R"(for %m: free grid_x in n {
  alloc @s: f32 shared[8] padding 1
  alloc @t: f32 local[8] layout [[thread(4, 1), register(2)]]
  acc %r: sum
  for %c: free local [thread(4, 1), register(2)] in 8 {
    @t[%c] = @x[%m, %c]
    @s[%c] = @x[%m, %c] via cp_async
    %r <- @t[%c]
  }
  combine {name = @r, monoid = sum, thread_mask = 3}
  for %e: free local [thread(8, 1)] in 8 { @y[%m, %e] = @r[] }
})";

TEST(TileVerify, GoodTileHasNoErrors) { EXPECT_THAT(Tile(kGoodTile), IsEmpty()); }

TEST(TileVerify, Schedule) {
  EXPECT_THAT(
      Tile("", "threads = 96"),
      ElementsAre(HasSubstr("96 threads, expected a power of two from 32 to 1024 [schedule]")));
  EXPECT_THAT(Tile("", "threads = 64, axes = [{axis = %m}, {axis = %m}]"),
              ElementsAre(HasSubstr("%m is listed twice [schedule]")));
  EXPECT_THAT(Tile("", "threads = 64, axes = [{axis = %m, steps = 0}]"),
              ElementsAre(HasSubstr("0 steps [schedule]")));
  EXPECT_THAT(Tile("", "threads = 64, axes = [{axis = %m, outer = local}]"),
              ElementsAre(HasSubstr("neither grid nor serial [schedule]")));
  EXPECT_THAT(Tile("", "threads = 64, stages = [{buffer = @q, axis = %m}]"),
              ElementsAre(HasSubstr("which is no buffer [schedule]")));
  EXPECT_THAT(Tile("", "threads = 64, stages = [{buffer = @x, axis = %m, depth = 0}]"),
              ElementsAre(HasSubstr("depth 0")));
  EXPECT_THAT(Tile("", "threads = 64, cluster = 0"), ElementsAre(HasSubstr("cluster 0")));
}
TEST(TileVerify, Digits) {
  EXPECT_THAT(Tile("for %c: free local [register(4)] in 8 { }"),
              ElementsAre(HasSubstr("digits of 4 coordinates, extent 8 [digits]")));
  EXPECT_THAT(Tile("for %c: free serial [register(8)] in 8 { }"),
              ElementsAre(HasSubstr("only local loops have digits [digits]")));
  EXPECT_THAT(Tile("for %c: free local [thread(3, 1)] in 3 { }"),
              ElementsAre(HasSubstr("thread(3, 1) is not in a block of 64")));
  EXPECT_THAT(Tile("for %c: free local [thread(8, 16)] in 8 { }"),
              ElementsAre(HasSubstr("thread(8, 16) is not in a block of 64")));
  EXPECT_THAT(Tile("for %c: free local [thread(4, 1), thread(4, 2)] in 16 { }"),
              ElementsAre(HasSubstr("same bits")));
  EXPECT_THAT(
      Tile("for %c: free local [thread(4, 1)] in 4 { for %d: free local [thread(4, 2)] in 4 { } }"),
      ElementsAre(HasSubstr("uses bits of the thread index that %c uses [digits]")));
  EXPECT_THAT(Tile("for %c: free local [matrix(16)] in 16 { }"),
              ElementsAre(HasSubstr("stands on a contract axis [digits]")));
}
TEST(TileVerify, Grid) {
  EXPECT_THAT(Tile("for %s: free serial in 2 { for %m: free grid_x in n { } }"),
              ElementsAre(HasSubstr("stands in %s, which is no grid loop [grid]")));
}
TEST(TileVerify, Layout) {
  EXPECT_THAT(Tile("alloc @t: f32 local[8] layout [[register(4)]]"),
              ElementsAre(HasSubstr("digits of 4 coordinates for dimension 0 of 8 [layout]")));
  EXPECT_THAT(Tile("alloc @t: f32 local[8, 2] layout [[register(8)]]"),
              ElementsAre(HasSubstr("layout of 1 dimensions for 2 [layout]")));
  EXPECT_THAT(Tile("alloc @t: f32 local[4, 4] layout [[thread(4, 1)], [thread(4, 2)]]"),
              ElementsAre(HasSubstr("two dimensions use the same bits")));
  EXPECT_THAT(Tile("alloc @t: f32 shared[8] layout [[register(8)]]"),
              ElementsAre(HasSubstr("shared memory has no layout [layout]")));
  EXPECT_THAT(Tile("alloc @t: f32 shared[8] align 24"),
              ElementsAre(HasSubstr("alignment 24 [layout]")));
  EXPECT_THAT(Tile("acc %s: sum[8] layout [[register(4)]]"), ElementsAre(HasSubstr("[layout]")));
}
TEST(TileVerify, SlotsOfARing) {
  EXPECT_THAT(Tile("alloc @t: f32 shared[3, 8] slots 3"), IsEmpty());
  EXPECT_THAT(Tile("alloc @t: f32 shared[3, 8] slots 2"),
              ElementsAre(HasSubstr("2 slots, which the first dimension does not count [layout]")));
  EXPECT_THAT(Tile("alloc @t: f32 local[3] slots 3"), ElementsAre(HasSubstr("3 slots")));
  EXPECT_THAT(Tile("alloc @t: f32 shared[3] slots 0"), ElementsAre(HasSubstr("0 slots")));
}
TEST(TileVerify, Combine) {
  EXPECT_THAT(Tile("combine {name = @y, monoid = sum, thread_mask = 3}"),
              ElementsAre(HasSubstr("neither a state nor a local array [combine]")));
  EXPECT_THAT(Tile("acc %s: max combine {name = @s, monoid = sum, thread_mask = 3}"),
              ElementsAre(HasSubstr("combines by sum, the state is a max")));
  EXPECT_THAT(Tile("acc %s: sum combine {name = @s, monoid = sum, thread_mask = 64}"),
              ElementsAre(HasSubstr("thread mask 64")));
}
TEST(TileVerify, Engine) {
  EXPECT_THAT(Tile("alloc @t: f32 local[8] @t[0] = @x[0, 0] via cp_async"),
              ElementsAre(HasSubstr("[engine]")));
  EXPECT_THAT(Tile("alloc @t: f32 shared[8] @t[0] = (@x[0, 0] * 2.0) via cp_async"),
              ElementsAre(HasSubstr("[engine]")));
}

// ---- Kernel level
// -------------------------------------------------------------------------------------------

constexpr char kGoodKernel[] = R"(alloc @s: bf16 shared[16, 64] padding 8
alloc @r: f32 local[4]
alloc @a: bf16 local[8]
alloc @c: f32 local[4]
async_copy {target = @s, target_indices = [(thread.x // 8), ((thread.x % 8) * 8)], source = @h, source_indices = [block.x, ((thread.x % 8) * 8)], bytes = 16}
async_commit
async_wait {pending = 0}
barrier
for %i: free unroll in 4 { @c[%i] = 0.0 }
for %k: contract serial in 4 {
  load_matrix {target = @a, target_index = 0, source = @s, indices = [(thread.x % 16), (%k * 16)], count = 4}
  mma {shape = m16n8k16, dtype = bf16, accumulator = @c, accumulator_index = 0, a = @a, a_index = 0, b = @a, b_index = 4}
}
let %warp = (thread.x // 32)
if (%warp == 0) {
  vector_load {target = @r, target_index = 0, source = @x, dtype = f32, indices = [block.x, (thread.x * 4)], width = 4, guard = (thread.x < 16)}
  let %t = shuffle_xor(@r[0], 1)
  vector_store {target = @y, indices = [block.x, (thread.x * 4)], source = @r, source_index = 0, width = 4, guard = (thread.x < 16)}
})";

TEST(KernelVerify, GoodKernelHasNoErrors) { EXPECT_THAT(Kernel(kGoodKernel), IsEmpty()); }

TEST(KernelVerify, Launch) {
  EXPECT_THAT(Kernel("", "grid = [1, 1, 1], threads = 48"),
              ElementsAre(HasSubstr("48 threads, expected a multiple of 32 up to 1024 [launch]")));
  EXPECT_THAT(Kernel("", "grid = [1, 1, 1], threads = 2048"),
              ElementsAre(HasSubstr("2048 threads")));
  EXPECT_THAT(Kernel("", "grid = [1, 1], threads = 64"),
              ElementsAre(HasSubstr("grid of rank 2, expected 3 [launch]")));
  EXPECT_THAT(Kernel("", "grid = [1, (n * 65536), 1], threads = 64"),
              ElementsAre(HasSubstr("expected 1 to 65535 [launch]")));
  EXPECT_THAT(Kernel("", "grid = [(n - 1), 1, 1], threads = 64"),
              ElementsAre(HasSubstr("[launch]")));
  EXPECT_THAT(Kernel("", "grid = [1, 1, 1], threads = 64, cluster = 9"),
              ElementsAre(HasSubstr("cluster of 9")));
  EXPECT_THAT(Kernel("", "grid = [1, 1, 1], threads = 64, min_blocks_per_sm = 0"),
              ElementsAre(HasSubstr("min_blocks_per_sm 0")));
}
TEST(KernelVerify, Kind) {
  EXPECT_THAT(Kernel("for %i: free unroll in n { }"),
              ElementsAre(HasSubstr("unrolled extent `n`, expected 1 to 1024 [kind]")));
  EXPECT_THAT(Kernel("alloc @s: f32 shared[4] @s[0] = @x[0, 0] via cp_async"),
              ElementsAre(HasSubstr("a store goes through registers [kind]")));
}
TEST(KernelVerify, Registers) {
  EXPECT_THAT(Kernel("alloc @r: f32 local[4, 4]"),
              ElementsAre(HasSubstr(
                  "a register array has one dimension and no padding, got 2 and 0 [registers]")));
  EXPECT_THAT(Kernel("alloc @r: f32 local[64] @r[thread.x] = 1.0"),
              ElementsAre(HasSubstr(
                  "index `thread.x` is not constant once loops are unrolled [registers]")));
  EXPECT_THAT(Kernel("alloc @r: f32 local[4] for %i: free serial in 4 { @r[%i] = 1.0 }"),
              ElementsAre(HasSubstr("[registers]")));
}
TEST(KernelVerify, Shared) {
  EXPECT_THAT(
      Kernel("alloc @s: f32 shared[65536]"),
      ElementsAre(HasSubstr("262144 bytes of shared memory, the limit is 232448 [shared]")));
  EXPECT_THAT(Kernel("alloc @s: f32 shared[4] align 3"),
              ElementsAre(HasSubstr("alignment 3 [shared]")));
}
TEST(KernelVerify, UniformBarrier) {
  EXPECT_THAT(Kernel("if (thread.x < 32) { barrier }"),
              ElementsAre("kernel k / if (thread.x < 32) / barrier: only some threads of the block "
                          "reach the barrier [uniform]"));
  EXPECT_THAT(Kernel("for %i: free serial in (thread.x + 1) { barrier }"),
              ElementsAre(HasSubstr("[uniform]")));
  EXPECT_THAT(
      Kernel("let %t = (thread.x // 64) if (%t == 0) { for %i: free serial in 2 { barrier } }"),
      ElementsAre(HasSubstr("[uniform]")));
  EXPECT_THAT(Kernel("if (@x[block.x, thread.x] < 0.0) { barrier }"),
              ElementsAre(HasSubstr("[uniform]")));
  EXPECT_THAT(Kernel("if (block.x < 3) { for %i: free serial in n { barrier } }"), IsEmpty());
}
TEST(KernelVerify, WholeWarps) {
  const std::string mma = "alloc @a: bf16 local[8] alloc @c: f32 local[4] ";
  const std::string use =
      "mma {shape = m16n8k16, dtype = bf16, accumulator = @c, accumulator_index = 0, a = @a, "
      "a_index = 0, b = @a, b_index = 0}";
  EXPECT_THAT(Kernel(mma + "if (thread.x < 40) { " + use + " }"),
              ElementsAre(HasSubstr("only some lanes of a warp get here [warp]")));
  EXPECT_THAT(Kernel(mma + "if ((thread.x // 32) == 1) { " + use + " }"), IsEmpty());
  EXPECT_THAT(Kernel("let %t = select((thread.x < 3), shuffle_xor(1.0, 1), 0.0)"),
              ElementsAre(HasSubstr("reached by only some lanes of a warp [warp]")));
  EXPECT_THAT(Kernel("@y[block.x, thread.x] = shuffle_xor(1.0, 1) when (thread.x < 3)"),
              Contains(HasSubstr("[warp]")));
}
TEST(KernelVerify, Vector) {
  auto load = [](std::string source, std::string index, std::string rest) {
    return Kernel("alloc @r: f32 local[4] vector_load {target = @r, target_index = 0, source = " +
                  source + ", dtype = f32, indices = [block.x, " + index + "], " + rest + "}");
  };
  EXPECT_THAT(load("@x", "((thread.x % 16) * 4)", "width = 4"), IsEmpty());
  EXPECT_THAT(
      load("@x", "((thread.x % 16) * 2)", "width = 4"),
      ElementsAre(HasSubstr("@x: the address is not provably a multiple of 16 bytes [vector]")));
  EXPECT_THAT(
      load("@odd", "((thread.x % 15) * 4)", "width = 4"),
      ElementsAre(HasSubstr("@odd: the address is not provably a multiple of 16 bytes [vector]")));
  EXPECT_THAT(load("@x", "(thread.x * 4)", "width = 4"), ElementsAre(HasSubstr("[bounds]")));
  EXPECT_THAT(load("@x", "(thread.x * 4)", "width = 4, guard = ((thread.x * 4) < 64)"), IsEmpty());
  EXPECT_THAT(load("@x", "(thread.x * 4)", "width = 4, guard = ((thread.x * 4) < 63)"),
              ElementsAre(HasSubstr("[bounds]")));
  EXPECT_THAT(load("@x", "0", "width = 3"),
              ElementsAre(HasSubstr("a vector of 12 bytes [vector]")));
  EXPECT_THAT(load("@x", "0", "width = 8"),
              Contains(HasSubstr("index `7` of dimension 0 is not provably within 0..4 [bounds]")));
  EXPECT_THAT(load("@h", "0", "width = 4"), Contains(HasSubstr("[vector]")));
}
TEST(KernelVerify, Async) {
  const std::string copy =
      "alloc @s: f32 shared[64] async_copy {target = @s, target_indices = [thread.x], source = @x, "
      "source_indices = [block.x, thread.x], bytes = 4} ";
  EXPECT_THAT(Kernel(copy + "async_commit async_wait {pending = 0}"), IsEmpty());
  EXPECT_THAT(Kernel(copy + "async_wait {pending = 0}"),
              ElementsAre("kernel k / async_copy @s: the copy is never committed [async]"));
  EXPECT_THAT(Kernel(copy + "async_commit"),
              ElementsAre("kernel k / async_copy @s: the copy is never waited for [async]"));
  EXPECT_THAT(Kernel("async_commit async_wait {pending = 0} " + copy), testing::SizeIs(2));
  EXPECT_THAT(
      Kernel("for %i: free serial in n { async_commit async_wait {pending = 0} " + copy + "}"),
      IsEmpty());
  EXPECT_THAT(Kernel("async_wait {pending = -1}"), ElementsAre(HasSubstr("[async]")));
  EXPECT_THAT(
      Kernel("alloc @s: f32 shared[64] async_copy {target = @s, target_indices = [0], source = @x, "
             "source_indices = [block.x, 0], bytes = 2} async_commit async_wait {}"),
      ElementsAre(HasSubstr("a copy of 2 bytes [async]")));
  EXPECT_THAT(
      Kernel("alloc @s: f32 shared[64] async_copy {target = @s, target_indices = [1], source = @x, "
             "source_indices = [block.x, 0], bytes = 8} async_commit async_wait {}"),
      ElementsAre(HasSubstr("@s: the address is not provably a multiple of 8 bytes [async]")));
  EXPECT_THAT(
      Kernel("alloc @s: bf16 shared[64] async_copy {target = @s, target_indices = [0], source = "
             "@x, source_indices = [block.x, 0], bytes = 8} async_commit async_wait {}"),
      ElementsAre(HasSubstr("[async]")));
}
TEST(KernelVerify, LoadMatrix) {
  auto load = [](std::string shared, std::string rest) {
    return Kernel("alloc @s: " + shared +
                  " alloc @a: bf16 local[8] load_matrix {target = @a, source = @s, " + rest + "}");
  };
  const std::string rows = "indices = [(thread.x % 16), 0]";
  EXPECT_THAT(load("bf16 shared[16, 16]", "target_index = 0, count = 4, " + rows), IsEmpty());
  EXPECT_THAT(
      load("bf16 shared[16, 16] padding 4", "target_index = 0, count = 4, " + rows),
      ElementsAre(HasSubstr("@s: the address is not provably a multiple of 16 bytes [matrix]")));
  EXPECT_THAT(load("bf16 shared[16, 16]", "target_index = 0, count = 3, " + rows),
              ElementsAre(HasSubstr("3 matrices [matrix]")));
  EXPECT_THAT(load("bf16 shared[16, 16]", "target_index = 2, count = 4, " + rows),
              ElementsAre(HasSubstr("[bounds]")));
  EXPECT_THAT(load("bf16 shared[16, 16]", "target_index = 1, count = 2, " + rows),
              ElementsAre(HasSubstr("target index `1` is odd [matrix]")));
  EXPECT_THAT(
      load("bf16 shared[16, 16]", "target_index = 0, count = 4, indices = [(thread.x % 16), 16]"),
      ElementsAre(HasSubstr("[bounds]")));
  EXPECT_THAT(load("f32 shared[16, 16]", "target_index = 0, count = 4, " + rows),
              ElementsAre(HasSubstr("[matrix]")));
}
TEST(KernelVerify, Mma) {
  auto mma = [](std::string rest) {
    return Kernel(
        "alloc @a: bf16 local[8] alloc @c: f32 local[4] alloc @f: f32 local[4] mma {accumulator = "
        "@c, accumulator_index = 0, a = @a, a_index = 0, b_index = 0, " +
        rest + "}");
  };
  EXPECT_THAT(mma("shape = m16n8k16, dtype = bf16, b = @a"), IsEmpty());
  EXPECT_THAT(mma("shape = m16n8k8, dtype = bf16, b = @a"),
              ElementsAre(HasSubstr("bf16 operands with k = 8 [mma]")));
  EXPECT_THAT(mma("shape = m16n8k16, dtype = bf16, b = @f"),
              ElementsAre(HasSubstr("a fragment of f32 for operands of bf16 [mma]")));
  EXPECT_THAT(mma("shape = m16n8k16, dtype = bf16, b = @h"),
              ElementsAre(HasSubstr("@h is not a register array [registers]")));
  EXPECT_THAT(
      Kernel("alloc @a: bf16 local[8] alloc @c: f32 local[6] mma {shape = m16n8k16, dtype = bf16, "
             "accumulator = @c, accumulator_index = 4, a = @a, a_index = 0, b = @a, b_index = 0}"),
      ElementsAre(HasSubstr("index `7` of dimension 0 is not provably within 0..6 [bounds]")));
}

}  // namespace
}  // namespace hackc::ir
