// SPDX-License-Identifier: MIT
// Graph, Tensor and Loop interpreters on the golden models: each level verifies, round-trips
// through its text and computes what the level above does.
#include <algorithm>

#include "compiler/frontend/frontend.h"
#include "compiler/interp/graph_interpreter.h"
#include "compiler/interp/tensor_interpreter.h"
#include "compiler/ir/graph_verify.h"
#include "compiler/ir/loop_verify.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/ir/tensor_text.h"
#include "compiler/ir/tensor_verify.h"
#include "compiler/passes/graph/fuse_projections.h"
#include "compiler/passes/loop/lower_tensor.h"
#include "compiler/passes/tensor/dead_values.h"
#include "compiler/passes/tensor/inline_views.h"
#include "compiler/passes/tensor/lower_graph.h"
#include "gmock/gmock.h"
#include "tests/support/golden.h"
#include "tools/opt/loop_module_run.h"

namespace hackc::passes {
namespace {

using Outputs = absl::StatusOr<std::map<std::string, interp::TensorData>>;

// Other orders of summation in float64, and rounding of constants such as 1e-06 to text and back.
constexpr double kReordered = 1e-12;

class GoldenModels : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    absl::StatusOr<test::Golden> golden = test::LoadGolden(GetParam());
    ASSERT_OK(golden);
    golden_ = *std::move(golden);
    run_.weights = golden_.WeightsByName();
  }

  ir::GraphModule Build(ir::DType dtype, int64_t past) {
    frontend::FrontendOptions options;
    options.dtype = dtype;
    options.batch = {1, 4};
    options.seq = {1, 16};
    options.past = {0, past};
    auto module = frontend::BuildGraph(golden_.config_json, options);
    EXPECT_TRUE(module.ok()) << module.status();
    return module.ok() ? *module : ir::GraphModule();
  }

  void SetIds(int64_t batch, int64_t seq, int64_t past) {
    run_.symbols = {{"batch", batch}, {"seq", seq}, {"past", past}};
    interp::TensorData ids = interp::TensorData::Zeros(ir::DType::kI32, {batch, seq});
    for (size_t i = 0; i < ids.values.size(); ++i)
      ids.values[i] = static_cast<double>((i * 37 + 11 + past) % 96);
    run_.inputs["input_ids"] = std::move(ids);
  }

  // Runs with states of its own, which start from `states`.
  template <typename Module, typename Run>
  std::vector<double> Logits(const Module& module, Run run_module,
                             std::map<std::string, interp::TensorData> states) {
    run_.states = &states;
    Outputs outputs = run_module(module, run_);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return outputs.ok() ? outputs->at("logits").values : std::vector<double>();
  }

  // All the levels below `graph` against it.
  void CheckLevels(const ir::GraphModule& graph, double tolerance,
                   const std::map<std::string, interp::TensorData>& states = {}) {
    const std::vector<double> expected = Logits(graph, interp::RunGraph, states);
    const auto same = [&](std::string_view level, const std::vector<double>& logits) {
      EXPECT_EQ(logits.size(), expected.size()) << level;
      EXPECT_LE(test::Difference(logits, expected), tolerance) << level;
    };
    const ir::GraphModule fused = FuseProjections(graph);
    EXPECT_THAT(ir::VerifyGraph(fused), testing::IsEmpty());
    same("fuse_projections", Logits(fused, interp::RunGraph, states));

    const ir::TensorModule lowered = LowerGraph(fused);
    const ir::TensorModule tensor = DeadValues(InlineViews(lowered));
    for (const ir::TensorModule* module : {&lowered, &tensor}) {
      EXPECT_THAT(ir::VerifyTensor(*module), testing::IsEmpty());
      const std::string text = ir::Print(*module);
      auto parsed = ir::ParseTensor(text);
      ASSERT_OK(parsed);
      EXPECT_EQ(ir::Print(*parsed), text);
      same("tensor", Logits(*parsed, interp::RunTensor, states));
    }
    const ir::LoopModule loops = LowerTensor(tensor);
    for (const ir::LoopSegment& segment : loops.segments) {
      for (const ir::LoopLaunch& launch : segment.ops) {
        EXPECT_THAT(ir::VerifyLoop(launch.fn), testing::IsEmpty());
        auto parsed = ir::ParseLoop(ir::Print(launch.fn));
        ASSERT_OK(parsed);
        EXPECT_EQ(ir::Print(*parsed), ir::Print(launch.fn));
      }
    }
    same("loop", Logits(loops, opt::RunLoopModule, states));
  }

  test::Golden golden_;
  interp::RunInputs run_;
};

TEST_P(GoldenModels, EveryLevelIsTransformersPrefill) {
  const ir::TensorModule tensor = DeadValues(InlineViews(LowerGraph(Build(ir::DType::kF32, 0))));
  run_.symbols = {{"batch", 1}, {"seq", 13}, {"past", 0}};
  run_.inputs["input_ids"] = golden_.expected.at("input_ids");
  const std::vector<double>& expected = golden_.expected.at("logits").values;
  EXPECT_LE(test::Difference(Logits(tensor, interp::RunTensor, {}), expected),
            test::kGoldenTolerance);
  EXPECT_LE(test::Difference(Logits(LowerTensor(tensor), opt::RunLoopModule, {}), expected),
            test::kGoldenTolerance);
}

TEST_P(GoldenModels, PrefillOfABatch) {
  const ir::GraphModule graph = Build(ir::DType::kF32, 0);
  for (auto [batch, seq] : {std::pair{1, 1}, {3, 7}}) {
    SetIds(batch, seq, 0);
    CheckLevels(graph, kReordered);
  }
}

TEST_P(GoldenModels, StepsWithCache) {
  if (GetParam() == "llama-rope-dynamic") GTEST_SKIP() << "its table ends at 16 positions";
  const ir::GraphModule graph = Build(ir::DType::kF32, 24);
  std::map<std::string, interp::TensorData> states;
  SetIds(2, 9, 0);
  Logits(graph,
         [&](const auto& module, interp::RunInputs run) {
           run.states = &states;
           return interp::RunGraph(module, run);
         },
         {});
  ASSERT_FALSE(states.empty());
  SetIds(2, 3, 9);  // attention without the cached keys would differ
  CheckLevels(graph, kReordered, states);
}

// Rounding is where the graph has it. Sums that are held in f32 between Tensor operations round
// twice, which now and then moves a value to its neighbour: hence a tolerance of a fraction of the
// dtype's precision. lower_graph_test.cc has the casts themselves.
TEST_P(GoldenModels, RoundingToStorage) {
  run_.round_to_storage = true;
  SetIds(1, 11, 0);
  CheckLevels(Build(ir::DType::kBF16, 0), 0.3 / 256);
  CheckLevels(Build(ir::DType::kF16, 0), 0.3 / 2048);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenModels, testing::ValuesIn(test::GoldenNames()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace hackc::passes
