// SPDX-License-Identifier: MIT
// Random Tensor modules: they verify, round-trip, and mean the same after each pass down to
// kernels.
#include <gmock/gmock.h>

#include <random>

#include "compiler/interp/tensor_interpreter.h"
#include "compiler/ir/loop_verify.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/ir/tensor_text.h"
#include "compiler/ir/tensor_verify.h"
#include "compiler/passes/loop/lower_tensor.h"
#include "compiler/passes/tensor/dead_values.h"
#include "compiler/passes/tensor/inline_views.h"
#include "tests/passes/segment_values.h"
#include "tests/support/golden.h"
#include "tests/support/random_tensor.h"
#include "tools/opt/loop_module_run.h"

namespace hackc::passes {
namespace {

std::string PrintKernels(const ir::LoopModule& loops) {
  std::string text;
  for (const ir::LoopLaunch& launch : loops.segments[0].ops) text += ir::Print(launch.fn);
  return text;
}

// Kernels for the module with a random three quarters of its values fused, whatever it costs;
// absent when that cannot be written.
std::optional<ir::LoopModule> FuseAtRandom(const ir::TensorModule& module, std::mt19937& random) {
  const ir::TensorSegment& segment = module.segments[0];
  std::set<std::string> fused;
  for (const ir::TensorOp& op : segment.ops) {
    bool yielded =
        std::find(segment.yields.begin(), segment.yields.end(), op.out) != segment.yields.end();
    if (!yielded && random() % 4 != 0) fused.insert(op.out);
  }
  ir::LoopModule loops{module.name, module.symbols, module.sources, {}, module.outputs};
  ir::LoopSegment kernels;
  kernels.name = segment.name;
  kernels.yields = segment.yields;
  kernels.results = segment.results;
  passes::SegmentValues values = test::ValuesOf(module);
  for (const ir::TensorOp& op : segment.ops) {
    if (fused.contains(op.out)) continue;
    auto kernel = BuildKernel(values, op.out, fused);
    if (!kernel) return std::nullopt;
    kernels.ops.push_back(*std::move(kernel));
  }
  loops.segments.push_back(std::move(kernels));
  return loops;
}

TEST(RandomModules, MeanTheSameAtEveryLevel) {
  int fused = 0, forced = 0;
  for (unsigned seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ir::TensorModule module = test::RandomTensorModule(seed, 2 + seed % 12);
    ASSERT_THAT(ir::VerifyTensor(module), testing::IsEmpty()) << ir::Print(module);
    auto parsed = ir::ParseTensor(ir::Print(module));
    ASSERT_OK(parsed);
    ASSERT_EQ(ir::Print(*parsed), ir::Print(module));

    std::mt19937 random(seed);
    auto fill = [&](std::vector<int64_t> shape) {
      interp::TensorData data = interp::TensorData::Zeros(ir::DType::kF32, std::move(shape));
      for (double& value : data.values) value = static_cast<double>(random() % 2000) / 1000 - 1;
      return data;
    };
    int64_t seq = 1 + seed % 7;
    interp::RunInputs run;
    run.symbols["seq"] = seq;
    run.inputs = {{"x", fill({seq, 6})}, {"z", fill({seq, 4})}};
    std::map<std::string, interp::TensorData> weights = {{"w", fill({3, 6})}, {"v", fill({4, 6})}};
    run.weights = [&](const std::string& name) -> absl::StatusOr<const interp::TensorData*> {
      return &weights.at(name);
    };
    auto expected = interp::RunTensor(module, run);
    ASSERT_OK(expected);
    ir::TensorModule inlined = DeadValues(InlineViews(module));
    ASSERT_THAT(ir::VerifyTensor(inlined), testing::IsEmpty()) << ir::Print(inlined);
    auto tensor = interp::RunTensor(inlined, run);
    ASSERT_OK(tensor);
    ir::LoopModule loops = LowerTensor(inlined);
    fused += static_cast<int>(inlined.segments[0].ops.size() - loops.segments[0].ops.size());
    auto kernels = opt::RunLoopModule(loops, run);
    ASSERT_OK(kernels);
    auto at_random = FuseAtRandom(inlined, random);
    if (at_random) {
      ++forced;
      for (const ir::LoopLaunch& launch : at_random->segments[0].ops) {
        EXPECT_THAT(ir::VerifyLoop(launch.fn), testing::IsEmpty()) << ir::Print(launch.fn);
      }
      auto outputs = opt::RunLoopModule(*at_random, run);
      ASSERT_OK(outputs);
      for (const auto& [name, data] : *expected) {
        EXPECT_LE(test::Difference(outputs->at(name).values, data.values), 1e-12)
            << ir::Print(inlined) << PrintKernels(*at_random);
      }
    }
    for (const auto& [name, data] : *expected) {
      EXPECT_LE(test::Difference(tensor->at(name).values, data.values), 1e-12) << ir::Print(module);
      EXPECT_LE(test::Difference(kernels->at(name).values, data.values), 1e-12)
          << ir::Print(module);
    }
  }
  EXPECT_GT(fused, 100);  // or nothing was tested
  EXPECT_GT(forced, 200);
}

}  // namespace
}  // namespace hackc::passes
