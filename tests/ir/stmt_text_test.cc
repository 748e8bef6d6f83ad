// SPDX-License-Identifier: MIT
#include "compiler/ir/stmt_text.h"

#include <set>
#include <string>

#include "compiler/ir/rewrite.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hackc::ir {
namespace {

constexpr char kLoop[] = R"(hackc loop 1
fn qkv_linear "y = x * w + \"bias\"" {
  symbol batch in 1..4
  symbol seq in 1..2048
  read @x: bf16[(batch * seq), 3584]
  read @w: bf16[4608, 3584]
  write @y: bf16[(batch * seq), 4608]
  readwrite @state: f32[]
  for %m: free in (batch * seq) {
    for %n: free in 4608 {
      acc %sum: sum
      acc %best: softmax_sum[4, 8]
      for %k: contract in 3584 {
        let %product = (f32(@x[%m, %k]) * f32(@w[%n, %k if (%n < 7)]))
        %sum <- %product when (%k <= %m)
        %best[0, (%k % 8)] <- %product, 1.0
      }
      @y[%m, %n] = bf16((%sum + @best[0, 1])) when (%m < seq)
    }
  }
  @state[] = 0.0
}
)";

constexpr char kTile[] = R"(hackc tile 1
fn t "" {
  symbol seq in 1..2048
  read @x: bf16[seq, 128]
  write @y: f32[seq]
  schedule {threads = 128, axes = [{axis = %m, outer = grid_x, steps = 2, digits = [thread(4, 32), register(2), thread(8, 4)]}, {axis = %k, outer = serial, steps = 1, digits = [matrix(16)]}], stages = [{buffer = @x, axis = %k, depth = 3, engine = cp_async, padding = 8, cache = keep}], instruction = mma, recipe = split3, cluster = 1, split_reduce = 1, min_blocks_per_sm = 2}
  for %m: free grid_x in ((seq + 63) // 64) {
    alloc @part: f32 local[64] layout [[thread(4, 32), register(2), thread(8, 4)]]
    alloc @stage: bf16 shared[3, 64, 128] padding 8 align 128
    for %i: free local [thread(4, 32), register(2), thread(8, 4)] in 64 {
      @stage[0, %i, 0] = @x[((%m * 64) + %i), 0 if (((%m * 64) + %i) < seq)] via cp_async
    }
    acc %total: max[64] layout [[thread(4, 32), register(2), thread(8, 4)]]
    acc %whole: sum
    %whole <- @whole[]
    @whole[] = 1.0
    combine {name = @part, monoid = max, thread_mask = 31}
    for %s: reduce serial in 4 {
    }
  }
}
)";

constexpr char kKernel[] = R"(hackc kernel 1
fn k0 "all kinds" {
  symbol seq in 1..2048
  read @x: bf16[seq, 128]
  write @y: f32[seq, 128]
  launch {grid = [((seq + 15) // 16), 1, 1], threads = 128, cluster = 1, min_blocks_per_sm = 1}
  alloc @s: bf16 shared[16, 128]
  alloc @r: bf16 local[8]
  alloc @a: f32 local[4]
  async_copy {target = @s, target_indices = [(thread.x // 8), ((thread.x % 8) * 8)], source = @x, source_indices = [(block.x * 16), 0], bytes = 16, guard = (thread.x < 64), cache = keep}
  async_commit
  async_wait {pending = 0}
  barrier
  for %i: free unroll in 4 {
    @a[%i] = 0.0
  }
  load_matrix {target = @r, target_index = 0, source = @s, indices = [(thread.x % 16), 0], count = 4, transposed = true}
  mma {shape = m16n8k16, dtype = bf16, accumulator = @a, accumulator_index = 0, a = @r, a_index = 0, b = @r, b_index = 4}
  vector_load {target = @r, target_index = 0, source = @x, dtype = bf16, indices = [block.x, 0], width = 8}
  if (thread.x < 32) {
    vector_store {target = @y, indices = [block.x, 0], source = @a, source_index = 0, width = 4, guard = (block.x < seq)}
  }
  let %t = shuffle_xor(@a[0], 16)
}
)";

constexpr char kUnits[] = R"(hackc kernel 1
fn k1 "roles and asynchronous units" {
  read @x: bf16[64, 64]
  write @y: bf16[64, 64]
  readwrite @z: f32[4]
  launch {grid = [1, 1, 1], threads = 256, cluster = 1, min_blocks_per_sm = 1}
  tensor_map {name = @x_map, buffer = @x, dims = [64, 64], strides = [64], box = [64, 64], swizzle = 128}
  tensor_map {name = @y_map, buffer = @y, dims = [64, 64], strides = [64], box = [64, 64], swizzle = 128}
  alloc @tile: bf16 shared[64, 64] align 1024
  alloc @full: i64 mbarrier[1]
  mbarrier_init {barrier = @full, count = 1}
  barrier
  role first 4 warps 4 {
    if (thread.x == 128) {
      mbarrier_arrive {barrier = @full, index = 0, bytes = 8192}
      bulk_load {target = @tile, target_indices = [0, 0], map = @x_map, coordinates = [0, 0], barrier = @full, barrier_index = 0}
    }
  }
  role first 0 warps 4 {
    alloc @sum: f32 local[32]
    mbarrier_wait {barrier = @full, index = 0, parity = 0}
    wgmma_fence
    wgmma {n = 64, dtype = bf16, accumulator = @sum, accumulator_index = 0, reset = true, a = @tile, a_indices = [0, 0], a_major = k, a_leading = 0, a_stride = 1024, a_swizzle = 128, b = @tile, b_indices = [0, 0], b_major = k, b_leading = 0, b_stride = 1024, b_swizzle = 128}
    wgmma_commit
    wgmma_wait {pending = 0}
    named_barrier {id = 1, threads = 128}
    proxy_fence
    if (thread.x == 0) {
      bulk_store {map = @y_map, coordinates = [0, 0], source = @tile, source_indices = [0, 0]}
      bulk_commit
      bulk_wait {pending = 0, read = false}
    }
    atomic_add {buffer = @z, indices = [(thread.x % 4)], value = @sum[0], guard = (thread.x < 4)}
  }
}
)";

template <typename Fn, typename Parse>
void ExpectRoundTrip(std::string_view text, Parse parse) {
  absl::StatusOr<Fn> fn = parse(text);
  ASSERT_TRUE(fn.ok()) << fn.status();
  EXPECT_EQ(Print(*fn), text);
  absl::StatusOr<Fn> again = parse(Print(*fn));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(SameValue(fn->fn, again->fn));
}

TEST(StmtText, LoopRoundTrips) { ExpectRoundTrip<LoopFn>(kLoop, ParseLoop); }
TEST(StmtText, TileRoundTrips) { ExpectRoundTrip<TileFn>(kTile, ParseTile); }
TEST(StmtText, KernelRoundTrips) { ExpectRoundTrip<KernelFn>(kKernel, ParseKernel); }
TEST(StmtText, UnitsRoundTrip) { ExpectRoundTrip<KernelFn>(kUnits, ParseKernel); }

TEST(StmtText, IfAfterAStoreIsNotItsGuard) {
  ExpectRoundTrip<LoopFn>(R"(hackc loop 1
fn f "" {
  write @y: f32[4]
  @y[0] = 1.0
  if true {
    @y[1] = 2.0 when false
  }
}
)",
                          ParseLoop);
}

TEST(StmtText, EveryKindIsInTheseExamples) {
  std::set<size_t> kinds;
  for (const Function& fn : {ParseLoop(kLoop)->fn, ParseTile(kTile)->fn, ParseKernel(kKernel)->fn,
                             ParseKernel(kUnits)->fn}) {
    WalkStmts(fn.body, [&](const Stmt& s) { kinds.insert(s->node.index()); });
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<StmtVariant>);
}

TEST(StmtText, ScheduleComesBackEqual) {
  Schedule schedule = ParseTile(kTile)->schedule;
  EXPECT_EQ(schedule.axes[0].steps, 2);
  EXPECT_EQ(schedule.axes[0].digits[2], (Digit{Digit::Kind::kThread, 8, 4}));
  EXPECT_EQ(schedule.axes[1].digits[0].kind, Digit::Kind::kMatrix);
  EXPECT_EQ(schedule.stages[0].engine, CopyEngine::kCpAsync);
  EXPECT_EQ(schedule.stages[0].cache, CacheHint::kKeep);
  EXPECT_EQ(schedule.recipe, PrecisionRecipe::kSplit3);
}

TEST(StmtText, PathNamesAreShort) {
  EXPECT_EQ(PathName(*ParseLoop(kLoop)->fn.body[0]), "for %m");
  EXPECT_EQ(PathName(*ParseLoop(kLoop)->fn.body[1]), "store @state");
  EXPECT_EQ(PathName(*ParseKernel(kKernel)->fn.body[3]), "async_copy @s");
}

TEST(StmtText, FieldsMayComeInAnyOrderAndBeLeftOut) {
  auto fn = ParseKernel(R"(hackc kernel 1
fn k "" { launch {threads = 64, grid = [1, 1, 1]} async_wait {} })");
  ASSERT_TRUE(fn.ok()) << fn.status();
  EXPECT_EQ(fn->threads, 64);
  EXPECT_THAT(Print(*fn), testing::HasSubstr("\n  async_wait {pending = 0}\n}\n"));
}

TEST(StmtText, ErrorsNameLineColumnAndWhatWasExpected) {
  auto error = [](std::string body) {
    return std::string(
        ParseLoop("hackc loop 1\nfn f \"\" {\nread @x: f32[4]\n" + body).status().message());
  };
  EXPECT_EQ(error("wobble }"), "line 4, column 1: expected a statement or `}`, got `wobble`");
  EXPECT_EQ(error("for %i: wide in 4 {} }"),
            "line 4, column 9: expected one of free, reduce, contract, got `wide`");
  EXPECT_EQ(error("@y[0] = 1.0 }"), "line 4, column 1: @y is not defined here");
  EXPECT_EQ(error("for %i: free in 2 { let %a = %i } @x[%a] = 1.0 }"),
            "line 4, column 38: %a is not defined here");
  EXPECT_EQ(error("%s <- 1.0 }"), "line 4, column 1: accumulator %s is not defined here");
  EXPECT_EQ(error("combine {monoid = sum, monoid = max} }"),
            "line 4, column 24: field `monoid` is given twice");
  EXPECT_EQ(error("combine {size = 3} }"), "line 4, column 10: `combine` has no field `size`");
  EXPECT_EQ(error("combine {monoid = sum} }"),
            "line 4, column 22: `combine` lacks the field `name`");
  EXPECT_EQ(error("@x[0] = 1.0 when 3 }"), "line 4, column 18: expected a bool condition, got i32");
  EXPECT_EQ(error(""), "line 4, column 1: expected a statement or `}`, got the end of the text");
  EXPECT_EQ(ParseLoop("hackc tile 1").status().message(),
            "line 1, column 7: expected `loop`, got `tile`");
  EXPECT_EQ(ParseLoop("hackc loop 2").status().message(),
            "line 1, column 12: version 2 of the loop text, this build reads 1");
}

TEST(StmtText, NestingIsCapped) {
  std::string text = "hackc loop 1\nfn f \"\" {\n";
  for (int i = 0; i < 10000; ++i) text += "if true {";
  EXPECT_THAT(std::string(ParseLoop(text).status().message()),
              testing::HasSubstr("nested more than 64 deep"));
}

}  // namespace
}  // namespace hackc::ir
