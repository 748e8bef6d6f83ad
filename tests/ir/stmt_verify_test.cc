// SPDX-License-Identifier: MIT
// What the Loop, Tile and Kernel verifiers accept, and what they refuse and no text can say;
// tests/invalid breaks their rules one by one.
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
  EXPECT_THAT(VerifyLoop(fn), ElementsAre("loop a b: \"a b\" is not a name [S1 name]"));
}
TEST(StmtVerify, Defined) {
  // The parser refuses these, so they are built.
  LoopFn fn = *ParseLoop("hackc loop 1\nfn f \"\" { write @y: f32[8] }");
  fn.fn.body = {MakeStmt(Store{"y", {Axis("m")}, FloatLit(1)}),
                MakeStmt(Store{"z", {IntLit(0)}, FloatLit(1)}),
                MakeStmt(Accumulate{"s", {}, {FloatLit(1)}})};
  EXPECT_THAT(VerifyLoop(fn), Contains("loop f / store @y: %m is not a value here [S3 defined]"));
  EXPECT_THAT(VerifyLoop(fn), Contains("loop f / store @z: @z is not a buffer here [S3 defined]"));
  EXPECT_THAT(VerifyLoop(fn),
              Contains("loop f / accumulate %s: %s is not an accumulator here [S3 defined]"));
  // Out of the body that holds it.
  fn.fn.body = {MakeStmt(For{"m", AxisRole::kFree, LoopKind::kSequential, IntLit(8), {}, {}}),
                MakeStmt(Store{"y", {Axis("m")}, FloatLit(1)})};
  EXPECT_THAT(VerifyLoop(fn), Contains("loop f / store @y: %m is not a value here [S3 defined]"));
  fn.fn.body = {MakeStmt(Store{"y", {MakeSymbol("n")}, FloatLit(1)})};
  EXPECT_THAT(VerifyLoop(fn), Contains("loop f / store @y: symbol n is not declared [S3 defined]"));
}
TEST(StmtVerify, Dtype) {
  LoopFn fn = *ParseLoop("hackc loop 1\nfn f \"\" { read @x: f32[8] write @y: f32[8] }");
  fn.fn.body = {MakeStmt(
      Store{"y", {IntLit(0)}, MakeCast(DType::kF32, MakeLoad("x", DType::kBF16, {IntLit(0)}))})};
  EXPECT_THAT(VerifyLoop(fn),
              ElementsAre("loop f / store @y: @x is f32, loaded as bf16 [S8 dtype]"));
}
TEST(StmtVerify, Depth) {
  Expr deep = FloatLit(1);
  for (int i = 0; i < 200; ++i) deep = MakeUnary(UnaryOp::kExp, deep);
  LoopFn fn = *ParseLoop("hackc loop 1\nfn f \"\" { write @y: f32[8] }");
  fn.fn.body = {MakeStmt(Store{"y", {IntLit(0)}, deep})};
  EXPECT_THAT(VerifyLoop(fn),
              ElementsAre(HasSubstr("the value nests more than 128 levels [S13 depth]")));
  Block nest;
  for (int i = 0; i < 100; ++i) {
    nest = {MakeStmt(
        For{"m" + std::to_string(i), AxisRole::kFree, LoopKind::kSequential, IntLit(2), {}, nest})};
  }
  fn.fn.body = nest;
  EXPECT_THAT(VerifyLoop(fn),
              ElementsAre(HasSubstr("statements nest more than 64 levels [S13 depth]")));
}

TEST(StmtVerify, BoundsUnderExtentsGuardsAndConditions) {
  EXPECT_THAT(
      Loop("for %m: free in (n + 1) { @y[%m, 0] = 1.0 }"),
      ElementsAre("line 7: loop f / for %m / store @y: @y: index `%m` of dimension 0 is not "
                  "provably within 0..n [S10 bounds]"));
  EXPECT_THAT(Loop("for %m: free in (n + 1) { @y[%m, 0] = 1.0 when (%m < n) }"), IsEmpty());
  EXPECT_THAT(Loop("for %m: free in (n + 1) { @y[%m, 0] = 1.0 when (%m <= n) }"),
              ElementsAre(HasSubstr("[S10 bounds]")));
  EXPECT_THAT(Loop("for %m: free in n { @y[%m, 0] = @x[(%m - 1), 0] }"),
              ElementsAre(HasSubstr("index `(%m - 1)`")));
  EXPECT_THAT(Loop("for %m: free in n { @y[%m, 0] = @x[(%m - 1), 0 if (1 <= %m)] }"), IsEmpty());
  EXPECT_THAT(Loop("for %m: free in n { @y[%m, 0] = select((%m == 0), 0.0, @x[(%m - 1), 0]) }"),
              ElementsAre(HasSubstr("[S10 bounds]")));  // %m != 0 is not taken as a bound
  EXPECT_THAT(Loop("for %m: free in n { @y[%m, 0] = select((%m < 1), 0.0, @x[(%m - 1), 0]) }"),
              IsEmpty());
  EXPECT_THAT(Loop("for %m: free in n { @y[%m, 0] = select(((%m < (n - 1)) && true), @x[(%m + 1), "
                   "0], 0.0) }"),
              IsEmpty());
  EXPECT_THAT(Loop("for %m: free in n { @y[%m, 8] = 1.0 }"), ElementsAre(HasSubstr("dimension 1")));
  EXPECT_THAT(Loop("@y[@ids[0], 0] = 1.0"), ElementsAre(HasSubstr("[S10 bounds]")));
  // A guard of an outer statement ends with it.
  EXPECT_THAT(Loop("for %m: free in (n + 1) { @y[%m, 0] = 1.0 when (%m < n) @y[%m, 1] = 1.0 }"),
              ElementsAre(HasSubstr("[S10 bounds]")));
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
      ElementsAre(HasSubstr("[S10 bounds]")));
  EXPECT_THAT(Kernel("@y[" + row + ", 0] = 1.0", launch), ElementsAre(HasSubstr("[S10 bounds]")));
}

// ---- Loop level
// ---------------------------------------------------------------------------------------------

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

TEST(KernelVerify, WhatIsNearAMistakeAndGood) {
  EXPECT_THAT(Kernel("if (block.x < 3) { for %i: free serial in n { barrier } }"), IsEmpty());
  const std::string mma =
      "mma {accumulator = @c, accumulator_index = 0, a = @a, a_index = 0, b = @a, b_index = 4}";
  EXPECT_THAT(
      Kernel("alloc @a: bf16 local[8] alloc @c: f32 local[4] if ((thread.x // 32) == 1) { " + mma +
             " }"),
      IsEmpty());
  auto load = [](std::string index, std::string guard) {
    return Kernel(
        "alloc @r: f32 local[4] vector_load {target = @r, target_index = 0, source = @x, "
        "dtype = f32, indices = [block.x, " +
        index + "], width = 4" + guard + "}");
  };
  EXPECT_THAT(load("((thread.x % 16) * 4)", ""), IsEmpty());
  EXPECT_THAT(load("(thread.x * 4)", ", guard = ((thread.x * 4) < 64)"), IsEmpty());
  const std::string copy =
      "async_copy {target = @s, target_indices = [thread.x], source = @x, source_indices = "
      "[block.x, thread.x], bytes = 4} ";
  EXPECT_THAT(Kernel("alloc @s: f32 shared[64] " + copy + "async_commit async_wait {pending = 0}"),
              IsEmpty());
  // Waited for in the next round.
  EXPECT_THAT(Kernel("alloc @s: f32 shared[64] for %i: free serial in n { async_commit async_wait "
                     "{pending = 0} " +
                     copy + "}"),
              IsEmpty());
}

}  // namespace
}  // namespace hackc::ir
