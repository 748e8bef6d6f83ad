// SPDX-License-Identifier: MIT
// The front end and the Graph interpreter together against what transformers computes in float64.
#include "compiler/frontend/frontend.h"
#include "compiler/interp/graph_interpreter.h"
#include "compiler/ir/graph_text.h"
#include "compiler/ir/graph_verify.h"
#include "gmock/gmock.h"
#include "tests/support/golden.h"

namespace hackc::interp {
namespace {

using test::kGoldenTolerance;

class GraphGolden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    absl::StatusOr<test::Golden> golden = test::LoadGolden(GetParam());
    ASSERT_OK(golden);
    golden_ = *std::move(golden);
    run_.weights = golden_.WeightsByName();
  }

  ir::GraphModule Build(int64_t past) {
    frontend::FrontendOptions options;
    options.dtype = ir::DType::kF32;
    options.batch = {1, 4};
    options.seq = {1, 16};
    options.past = {0, past};
    absl::StatusOr<ir::GraphModule> module = frontend::BuildGraph(golden_.config_json, options);
    EXPECT_TRUE(module.ok()) << module.status();
    if (!module.ok()) return {};
    EXPECT_THAT(ir::VerifyGraph(*module), testing::IsEmpty());
    // What runs is what was printed and read again.
    absl::StatusOr<ir::GraphModule> parsed = ir::ParseGraph(ir::Print(*module));
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return parsed.ok() ? *parsed : ir::GraphModule();
  }

  // The outputs for ids [batch, seq].
  TensorData Logits(const ir::GraphModule& module, TensorData ids, int64_t past) {
    run_.symbols = {{"batch", ids.shape[0]}, {"seq", ids.shape[1]}, {"past", past}};
    run_.inputs["input_ids"] = std::move(ids);
    auto outputs = RunGraph(module, run_);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return outputs.ok() ? outputs->at("logits") : TensorData();
  }

  const std::vector<double>& Expected(const std::string& name) {
    return golden_.expected.at(name).values;
  }

  test::Golden golden_;
  RunInputs run_;
};

TEST_P(GraphGolden, PrefillAndEveryHiddenState) {
  const ir::GraphModule module = Build(0);
  std::vector<TensorData>
      hidden;  // embedding, each layer's output, and the final norm's in the last's place
  run_.observe = [&](const std::string& name, int, const TensorData& data) {
    if (name == "embedding" || name.starts_with("mlp_residual")) hidden.push_back(data);
    if (name == "final_norm") hidden.back() = data;
  };
  const TensorData logits = Logits(module, golden_.expected.at("input_ids"), 0);
  EXPECT_EQ(logits.shape, (std::vector<int64_t>{1, 13, 96}));
  EXPECT_LE(test::Difference(logits.values, Expected("logits")), kGoldenTolerance);
  ASSERT_EQ(hidden.size(), 3);
  for (size_t i = 0; i < hidden.size(); ++i) {
    EXPECT_LE(test::Difference(hidden[i].values, Expected("hidden_" + std::to_string(i))),
              kGoldenTolerance)
        << "hidden_" << i;
  }
}

// Rows of a batch do not see each other.
TEST_P(GraphGolden, EachRowOfABatchIsItsOwn) {
  const ir::GraphModule module = Build(0);
  TensorData ids = golden_.expected.at("input_ids");
  ids.shape[0] = 3;
  for (int64_t i = 0; i < 26; ++i) ids.values.push_back((i * 7 + 5) % 96);
  TensorData logits = Logits(module, ids, 0);
  ASSERT_EQ(logits.size(), 3 * 13 * 96);
  logits.values.resize(13 * 96);
  EXPECT_LE(test::Difference(logits.values, Expected("logits")), kGoldenTolerance);
}

TEST_P(GraphGolden, GreedyStepsWithCache) {
  const ir::GraphModule module = Build(16);
  std::map<std::string, TensorData> states;
  run_.states = &states;
  const TensorData prompt = Logits(module, golden_.expected.at("input_ids"), 0);
  EXPECT_LE(test::Difference(prompt.values, Expected("logits")), kGoldenTolerance);
  std::vector<double> steps;
  for (int64_t i = 0; i < 4; ++i) {
    TensorData id = TensorData::Filled(ir::DType::kI32, {1, 1}, Expected("step_ids")[i]);
    const TensorData logits = Logits(module, std::move(id), 13 + i);
    steps.insert(steps.end(), logits.values.begin(), logits.values.end());
  }
  EXPECT_LE(test::Difference(steps, Expected("step_logits")), kGoldenTolerance);
}

// Rounding to storage changes the result by about the dtype's precision, and by something.
TEST_P(GraphGolden, StorageRoundingIsOfTheDTypesSize) {
  frontend::FrontendOptions options;
  options.seq = {1, 16};
  run_.round_to_storage = true;
  for (const auto& [dtype, low, high] : {std::tuple{ir::DType::kBF16, 1e-3, 0.1},
                                         {ir::DType::kF16, 1e-4, 0.02},
                                         {ir::DType::kF32, 1e-9, 1e-5}}) {
    options.dtype = dtype;
    absl::StatusOr<ir::GraphModule> module = frontend::BuildGraph(golden_.config_json, options);
    ASSERT_OK(module);
    const TensorData logits = Logits(*module, golden_.expected.at("input_ids"), 0);
    const double difference = test::Difference(logits.values, Expected("logits"));
    EXPECT_GT(difference, low) << ir::Name(dtype);
    EXPECT_LT(difference, high) << ir::Name(dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GraphGolden, testing::ValuesIn(test::GoldenNames()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace hackc::interp
