// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>
#include <random>

#include "compiler/interp/loop_interpreter.h"
#include "compiler/interp/tile_interpreter.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/support/cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hackc::interp {
namespace {

using ir::DType;

TensorData Random(DType dtype, std::vector<int64_t> shape, int seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  TensorData data = TensorData::Zeros(dtype, std::move(shape));
  for (double& value : data.values) value = normal(generator);
  data.Round();
  return data;
}

constexpr char kProduct[] = R"(hackc loop 1
fn product "y = x * w" {
  symbol seq in 1..16
  read @x: bf16[seq, 12]
  read @w: bf16[5, 12]
  write @y: bf16[seq, 5]
  for %m: free in seq {
    for %n: free in 5 {
      acc %sum: sum
      for %k: contract in 12 {
        %sum <- (f32(@x[%m, %k]) * f32(@w[%n, %k]))
      }
      @y[%m, %n] = bf16(%sum)
    }
  }
}
)";

TEST(LoopInterpreter, ComputesAProductInEachArithmetic) {
  auto fn = ir::ParseLoop(kProduct);
  ASSERT_TRUE(fn.ok()) << fn.status();
  for (Arithmetic arithmetic : {Arithmetic::kExact, Arithmetic::kStorage, Arithmetic::kHardware}) {
    FunctionRun run;
    run.arithmetic = arithmetic;
    run.symbols["seq"] = 7;
    run.buffers["x"] = Random(DType::kBF16, {7, 12}, 1);
    run.buffers["w"] = Random(DType::kBF16, {5, 12}, 2);
    absl::Status status = RunLoop(*fn, run);
    ASSERT_TRUE(status.ok()) << status;
    for (int m = 0; m < 7; ++m) {
      for (int n = 0; n < 5; ++n) {
        double sum = 0;
        float narrow = 0;
        for (int k = 0; k < 12; ++k) {
          const double product = run.buffers["x"].At({m, k}) * run.buffers["w"].At({n, k});
          sum += product;
          narrow = narrow + static_cast<float>(product);
        }
        const double wanted = arithmetic == Arithmetic::kExact     ? sum
                              : arithmetic == Arithmetic::kStorage ? RoundTo(DType::kBF16, sum)
                                                                   : RoundTo(DType::kBF16, narrow);
        EXPECT_EQ(run.buffers["y"].At({m, n}), wanted);
      }
    }
  }
}

TEST(LoopInterpreter, SoftmaxSumIsTheWeightedMean) {
  auto fn = ir::ParseLoop(R"(hackc loop 1
fn attention "softmax(s) * v" {
  read @s: f32[3, 8]
  read @v: f32[8]
  write @y: f32[3]
  for %m: free in 3 {
    acc %out: softmax_sum
    for %k: reduce in 8 {
      %out <- @s[%m, %k], @v[%k] when (%k < 6)
    }
    @y[%m] = %out
  }
})");
  ASSERT_TRUE(fn.ok()) << fn.status();
  FunctionRun run;
  run.buffers["s"] = Random(DType::kF32, {3, 8}, 1);
  run.buffers["v"] = Random(DType::kF32, {8}, 2);
  for (int k = 0; k < 8; ++k) {
    run.buffers["s"].At({1, k}) -= 1000;  // far below 0: weights must not vanish
    run.buffers["s"].At({2, k}) = -std::numeric_limits<double>::infinity();  // nothing to see: 0
  }
  ASSERT_TRUE(RunLoop(*fn, run).ok());
  for (int m = 0; m < 2; ++m) {
    double weight = 0, sum = 0, base = run.buffers["s"].At({m, 0});
    for (int k = 0; k < 6; ++k) {
      const double w = std::exp(run.buffers["s"].At({m, k}) - base);
      weight += w;
      sum += w * run.buffers["v"].values[k];
    }
    EXPECT_NEAR(run.buffers["y"].values[m], sum / weight, 1e-12);
  }
  EXPECT_EQ(run.buffers["y"].values[2], 0);
}

TEST(LoopInterpreter, ErrorsNameThePath) {
  auto fn = ir::ParseLoop(R"(hackc loop 1
fn f "" {
  symbol seq in 1..16
  read @ids: i32[seq]
  readwrite @y: f32[seq]
  for %m: free in seq {
    @y[@ids[%m]] = (1.0 / f32((%m // (seq - 3))))
  }
})");
  ASSERT_TRUE(fn.ok()) << fn.status();
  FunctionRun run;
  run.symbols["seq"] = 3;
  run.buffers["ids"] = TensorData::Filled(DType::kI32, {3}, 5);
  run.buffers["y"] = TensorData::Zeros(DType::kF32, {3});
  EXPECT_EQ(RunLoop(*fn, run).message(), "loop f / for %m / store @y: 0 // 0 is undefined");
  run.symbols["seq"] = 4;
  run.buffers["ids"] = TensorData::Filled(DType::kI32, {4}, 5);
  run.buffers["y"] = TensorData::Zeros(DType::kF32, {4});
  EXPECT_EQ(RunLoop(*fn, run).message(),
            "loop f / for %m / store @y: @y: index 5 of dimension 0 is outside extent 4");
}

TEST(LoopInterpreter, AStateBeyondAnyMemoryIsRefused) {
  for (const char* extents : {"16777216, 16777216", "16777216, 16777216, 65536", "4096, 8192"}) {
    auto fn = ir::ParseLoop(Cat("hackc loop 1\nfn f \"\" {\n  write @y: f32[1]\n  acc %s: sum[",
                                extents, "]\n  @y[0] = 1.0\n}"));
    ASSERT_TRUE(fn.ok()) << fn.status();
    FunctionRun run;
    EXPECT_EQ(RunLoop(*fn, run).message(),
              "loop f / acc %s: accumulator s: more than 16777216 elements");
  }
}

TEST(LoopInterpreter, UnwrittenOutputStaysNaN) {
  auto fn = ir::ParseLoop(R"(hackc loop 1
fn f "" { write @y: f32[4] for %m: free in 4 { @y[%m] = 1.0 when (%m < 3) } })");
  ASSERT_TRUE(fn.ok()) << fn.status();
  FunctionRun run;
  ASSERT_TRUE(RunLoop(*fn, run).ok());
  EXPECT_EQ(run.buffers["y"].values[2], 1);
  EXPECT_TRUE(std::isnan(run.buffers["y"].values[3]));
}

TEST(TileInterpreter, RunsABlockAsOneSequence) {
  auto fn = ir::ParseTile(R"(hackc tile 1
fn row_sum "" {
  symbol seq in 1..16
  read @x: f32[seq, 8]
  write @y: f32[seq]
  schedule {threads = 32}
  for %m: free grid_x in ((seq + 3) // 4) {
    alloc @tile: f32 shared[4, 8] padding 1
    for %i: free local [register(4)] in 4 {
      for %j: free local [thread(8, 1)] in 8 {
        @tile[%i, %j] = @x[((%m * 4) + %i), %j if (((%m * 4) + %i) < seq)]
      }
    }
    acc %sum: sum[4]
    for %r: free local [register(4)] in 4 {
      for %k: reduce local [thread(8, 1)] in 8 {
        %sum[%r] <- @tile[%r, %k]
      }
      combine {name = @sum, monoid = sum, thread_mask = 7}
      @sum[%r] = (@sum[%r] * 2.0)
      @y[((%m * 4) + %r)] = @sum[%r] when (((%m * 4) + %r) < seq)
    }
  }
})");
  ASSERT_TRUE(fn.ok()) << fn.status();
  FunctionRun run;
  run.symbols["seq"] = 6;
  run.buffers["x"] = Random(DType::kF32, {6, 8}, 1);
  absl::Status status = RunTile(*fn, run);
  ASSERT_TRUE(status.ok()) << status;
  for (int m = 0; m < 6; ++m) {
    double sum = 0;
    for (int k = 0; k < 8; ++k) sum += run.buffers["x"].At({m, k});
    EXPECT_DOUBLE_EQ(run.buffers["y"].values[m], 2 * sum);
  }
}

}  // namespace
}  // namespace hackc::interp
