// SPDX-License-Identifier: MIT
// Reference kernels on Loop IR that models do not always have; those of models are in
// kernel_levels_test.cc.
#include "compiler/program/reference_kernel.h"

#include <cmath>

#include "compiler/interp/kernel_interpreter.h"
#include "compiler/interp/loop_interpreter.h"
#include "compiler/ir/stmt_text.h"
#include "gtest/gtest.h"

namespace hackc::interp {
namespace {

ir::LoopFn Parse(const std::string& text) {
  auto loop = ir::ParseLoop(text);
  EXPECT_TRUE(loop.ok()) << loop.status();
  return *loop;
}

constexpr char kParts[] = R"(hackc loop 1
fn parts "every monoid over the first elements of a row"
{
  symbol past in 0..9
  read @x: f32[40, 9]
  write @y: f32[40, 5]
  for %h: free in 40 {
    acc %lse: log_sum_exp
    acc %least: min
    acc %most: max
    acc %product: product
    acc %mean: softmax_sum
    for %t: reduce in past {
      %lse <- @x[%h, %t]
      %least <- @x[%h, %t]
      %most <- @x[%h, %t] when (%t < 4)
      %product <- @x[%h, %t]
      %mean <- @x[%h, %t], @x[%h, %t]
    }
    @y[%h, 0] = %lse
    @y[%h, 1] = %least
    @y[%h, 2] = %most
    @y[%h, 3] = %product
    @y[%h, 4] = %mean
  }
}
)";

TEST(ReferenceKernel, EveryMonoidAlsoOverNothing) {
  const ir::LoopFn loop = Parse(kParts);
  for (const int64_t past : {0, 1, 6}) {
    FunctionRun truth;
    truth.symbols["past"] = past;
    TensorData x = TensorData::Zeros(ir::DType::kF32, {40, 9});
    for (size_t i = 0; i < x.values.size(); ++i) x.values[i] = std::sin(1.0 + i);
    x.values[3] = -INFINITY;  // a score that does not count
    x.Round();
    truth.buffers["x"] = x;
    FunctionRun plain = truth;
    ASSERT_TRUE(RunLoop(loop, truth).ok());
    const absl::Status status = RunKernel(program::PlainKernel(loop), plain);
    ASSERT_TRUE(status.ok()) << status;
    for (size_t i = 0; i < 200; ++i) {
      const double want = truth.buffers["y"].values[i], got = plain.buffers["y"].values[i];
      if (want == got || (std::isnan(want) && std::isnan(got))) continue;
      EXPECT_NEAR(got, want, 1e-9) << "past " << past << ", element " << i;
    }
  }
}

TEST(ReferenceKernel, KnowsWhatIntegersIndex) {
  const ir::LoopFn loop = Parse(R"(hackc loop 1
fn pages "rows of pages"
{
  symbol batch in 1..2
  symbol pages in 1..50
  read @table: i32[batch, 6]
  read @lengths: i32[batch]
  read @cache: bf16[pages, 3]
  write @y: f32[batch]
  for %b: free in batch {
    acc %sum: sum
    for %t: reduce in min(max(@lengths[%b], 0), 18) {
      %sum <- f32(@cache[min(max(@table[%b, (%t // 3)], 0), (pages - 1)), (%t % 3)])
    }
    @y[%b] = %sum
  }
}
)");
  const std::vector<program::BufferUse> uses = program::UsesOf(loop);
  ASSERT_EQ(uses.size(), 4u);
  EXPECT_EQ(uses[0].below.symbol, "pages");
  EXPECT_EQ(uses[1].below, program::DimExpr()) << "a length indexes nothing";
  EXPECT_TRUE(uses[3].written && !uses[3].read);
  EXPECT_EQ(program::RoundingOf(loop).coarsest, program::DType::kFloat32);
}

}  // namespace
}  // namespace hackc::interp
