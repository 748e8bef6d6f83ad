// SPDX-License-Identifier: MIT
// Attention of one token whose keys are taken in parts: both kernels in the Kernel interpreter
// (races, bounds, poison) against the undivided Loop IR, at lengths round the parts' edges, where
// most parts are empty, with scores that leave no weight to a 0 in place of -inf, over a cache that
// holds NaN beyond its filled part.
#include "compiler/passes/loop/split_reductions.h"

#include <cmath>
#include <random>

#include "compiler/interp/kernel_interpreter.h"
#include "compiler/interp/loop_interpreter.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/choose_schedule.h"
#include "gmock/gmock.h"
#include "tests/support/golden.h"

namespace hackc::passes {
namespace {

using interp::FunctionRun;
using interp::TensorData;
using ir::DType;

constexpr int64_t kCapacity = 4352;

struct Case {
  std::string name;
  DType dtype;
  int heads, kv_heads, dim;
  double scale = 0.3;
};

std::string Replace(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string Attention(const Case& c) {
  std::string text = R"(hackc loop 1
fn attention "attention" {
  symbol batch in 1..2
  symbol seq in 1..1
  symbol past in 0..4095
  read @x0: TYPE[batch, seq, HEADS, DIM]
  read @state0: TYPE[batch, 4352, GROUPS, DIM]
  read @state1: TYPE[batch, 4352, GROUPS, DIM]
  write @y: f32[batch, seq, HEADS, DIM]
  for %b: free in batch {
    for %s: free in seq {
      for %h: free in HEADS {
        acc %softmax: softmax_sum[DIM]
        for %t: reduce in ((past + %s) + 1) {
          acc %sum: sum
          for %d: contract in DIM {
            %sum <- (f32(@x0[%b, %s, %h, %d]) * f32(@state0[%b, %t, (%h // SHARE), %d]))
          }
          let %v = ((%sum * SCALE) - 1000.0)
          for %e2: free in DIM {
            %softmax[%e2] <- %v, f32(@state1[%b, %t, (%h // SHARE), %e2])
          }
        }
        for %e: free in DIM {
          @y[%b, %s, %h, %e] = @softmax[%e]
        }
      }
    }
  }
}
)";
  text = Replace(text, "TYPE", std::string(ir::Name(c.dtype)));
  text = Replace(text, "HEADS", std::to_string(c.heads));
  text = Replace(text, "GROUPS", std::to_string(c.kv_heads));
  text = Replace(text, "SHARE", std::to_string(c.heads / c.kv_heads));
  text = Replace(text, "SCALE", std::to_string(c.scale));
  return Replace(text, "DIM", std::to_string(c.dim));
}

TensorData Random(DType dtype, std::vector<int64_t> shape, int64_t filled, std::mt19937& rng) {
  TensorData data = TensorData::Zeros(dtype, shape);
  std::normal_distribution<double> normal;
  for (size_t i = 0; i < data.values.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / (shape[2] * shape[3]) % shape[1];
    data.values[i] = row < filled ? normal(rng) : NAN;
  }
  data.Round();
  return data;
}

class SplitReductionsTest : public testing::TestWithParam<Case> {};

TEST_P(SplitReductionsTest, PartsCombineToTheWhole) {
  const Case& c = GetParam();
  auto whole = ir::ParseLoop(Attention(c));
  ASSERT_OK(whole);
  ir::LoopModule module;
  module.segments.resize(1);
  module.segments[0].ops = {{*whole, {"q", "keys", "values", "y"}, {}}};
  auto target = schedule::FindTarget("sm_90a");
  ASSERT_OK(target);
  const ir::LoopModule split = SplitReductions(module, {target->multiprocessors, 0});
  ASSERT_EQ(split.segments[0].ops.size(), 2);
  std::vector<ir::KernelFn> kernels;
  for (const ir::LoopLaunch& launch : split.segments[0].ops) {
    auto lowered = LowerLoop(launch.fn, schedule::ChooseSchedule(launch.fn, *target).value());
    ASSERT_TRUE(lowered.ok()) << lowered.status() << ir::Print(launch.fn);
    kernels.push_back(lowered->kernel);
  }

  std::mt19937 rng(1);
  for (int64_t length : {1, 2, 63, 64, 65, 127, 131, 4096}) {
    if (length > 200 && c.dim > 32) continue;  // minutes
    SCOPED_TRACE(length);
    for (bool reverse : {false, true}) {
      FunctionRun run;
      run.symbols = {{"batch", length > 200 ? 1 : 2}, {"seq", 1}, {"past", length - 1}};
      const int64_t batch = run.symbols["batch"];
      run.buffers["x0"] = Random(c.dtype, {batch, 1, c.heads, c.dim}, 1, rng);
      run.buffers["state0"] = Random(c.dtype, {batch, kCapacity, c.kv_heads, c.dim}, length, rng);
      run.buffers["state1"] = Random(c.dtype, {batch, kCapacity, c.kv_heads, c.dim}, length, rng);
      FunctionRun truth = run;
      ASSERT_OK(interp::RunLoop(*whole, truth));
      run.arithmetic = interp::Arithmetic::kHardware;
      for (const ir::KernelFn& kernel : kernels) {
        ASSERT_OK(interp::RunKernel(kernel, run, {reverse, length < 200}));
      }
      const TensorData &want = truth.buffers["y"], &got = run.buffers["y"];
      double worst = 0;
      for (size_t i = 0; i < want.values.size(); ++i) {
        const double difference = std::abs(want.values[i] - got.values[i]);
        worst = std::isfinite(difference) ? std::max(worst, difference) : INFINITY;
      }
      // A score of 1000 is known to 2^-14 in float32, and so are the weights, relatively; a matrix
      // instruction takes them in bfloat16.
      EXPECT_LE(worst, c.dtype == DType::kF32 || c.dim < 32 ? 0x1p-11 : 0x1p-8);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Attention, SplitReductionsTest,
                         testing::Values(Case{"one_head_of_each", DType::kF32, 2, 2, 16},
                                         Case{"groups_of_seven", DType::kBF16, 14, 2, 16},
                                         Case{"groups_of_seven_f32", DType::kF32, 7, 1, 64},
                                         Case{"groups_of_seven_matrix", DType::kBF16, 7, 1, 64},
                                         Case{"groups_of_two_matrix", DType::kF16, 4, 2, 32},
                                         Case{"one_key_head", DType::kF16, 12, 1, 32},
                                         Case{"more_rows_than_few", DType::kBF16, 20, 1, 32},
                                         Case{"dim_of_a_prime_times_eight", DType::kF32, 6, 2, 40}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hackc::passes
