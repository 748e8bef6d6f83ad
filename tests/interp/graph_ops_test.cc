// SPDX-License-Identifier: MIT
// Operations that the golden models do not reach, on numbers worked out by hand, and what a run
// refuses.
#include <cmath>

#include "compiler/interp/graph_interpreter.h"
#include "compiler/interp/module_run.h"
#include "compiler/ir/graph_text.h"
#include "compiler/ir/graph_verify.h"
#include "gmock/gmock.h"
#include "tests/support/golden.h"

namespace hackc::interp {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;

constexpr double kClose = 1e-12;

// Runs operations `ops` that yield %y on inputs %a, %b, ... of the given types and values.
absl::StatusOr<std::vector<double>> Compute(
    const std::string& ops, const std::vector<std::pair<std::string, std::vector<double>>>& inputs,
    bool round = false) {
  std::string text = "hackc graph 1\nmodule \"m\"\nsymbol batch in 1..4\nsymbol seq in 1..8\n";
  RunInputs run;
  run.symbols = {{"batch", 1}, {"seq", 2}};
  run.round_to_storage = round;
  char name = 'a';
  for (const auto& [type, values] : inputs) {
    text += std::string("input %") + name + ": " + type + "\n";
    TensorData data{ir::DType::kF64, {}, values};
    for (size_t at = type.find('[') + 1; at < type.size(); at = type.find_first_of(",]", at) + 2) {
      const std::string extent = type.substr(at, type.find_first_of(",]", at) - at);
      data.shape.push_back(extent == "batch" ? 1 : extent == "seq" ? 2 : std::stoi(extent));
    }
    run.inputs[std::string(1, name++)] = data;
  }
  text += "segment s: repeat 1 from 0 step 1 carry () {\n" + ops +
          "\nyield (%y)\n} -> (%o)\noutput (%o)\n";
  HACKC_ASSIGN_OR_RETURN(const ir::GraphModule module, ir::ParseGraph(text));
  EXPECT_THAT(ir::VerifyGraph(module), testing::IsEmpty());
  HACKC_ASSIGN_OR_RETURN(const auto outputs, RunGraph(module, run));
  return outputs.at("o").values;
}

#define EXPECT_VALUES(result, ...)                                                         \
  do {                                                                                     \
    const auto values = (result);                                                          \
    ASSERT_OK(values);                                                                     \
    EXPECT_THAT(*values, Pointwise(DoubleNear(kClose), std::vector<double>{__VA_ARGS__})); \
  } while (false)

TEST(GraphOps, EmbeddingClampsIds) {
  EXPECT_VALUES(Compute("%y: f32[4, 2] = embedding(%a, %b)",
                        {{"i32[4]", {1, -5, 99, 0}}, {"f32[2, 2]", {1, 2, 3, 4}}}),
                3, 4, 1, 2, 3, 4, 1, 2);
}

TEST(GraphOps, LinearBothWays) {
  EXPECT_VALUES(
      Compute("%y: f32[1, 2] = linear(%a, %b, %c) {transposed = false}",
              {{"f32[1, 3]", {1, 2, 3}}, {"f32[2, 3]", {1, 0, 0, 0, 1, 1}}, {"f32[2]", {10, 20}}}),
      11, 25);
  EXPECT_VALUES(Compute("%y: f32[1, 2] = linear(%a, %b, none) {transposed = true}",
                        {{"f32[1, 3]", {1, 2, 3}}, {"f32[3, 2]", {1, 0, 0, 1, 0, 1}}}),
                1, 5);
}

TEST(GraphOps, Norms) {
  const double root = std::sqrt((9.0 + 16.0) / 2 + 0.5);
  EXPECT_VALUES(Compute("%y: f32[2] = rms_norm(%a, %b) {epsilon = 0.5, weight_offset = 1.0}",
                        {{"f32[2]", {3, 4}}, {"f32[2]", {0, 1}}}),
                3 / root, 4 / root * 2);
  const double deviation = std::sqrt(4.0 + 0.5);
  EXPECT_VALUES(Compute("%y: f32[2] = layer_norm(%a, %b, %c) {epsilon = 0.5}",
                        {{"f32[2]", {3, 7}}, {"f32[2]", {1, 2}}, {"f32[2]", {10, 20}}}),
                10 - 2 / deviation, 20 + 2 * 2 / deviation);
}

TEST(GraphOps, RopeTurnsHalvesOrPairsAndLeavesTheRest) {
  const std::pair<std::string, std::vector<double>> x = {"f32[batch, seq, 1, 5]",
                                                         {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}};
  // Position 0: no turn by the first angle, a quarter by the second. Position 1: the other way
  // round.
  const std::pair<std::string, std::vector<double>> c = {"f32[batch, seq, 2]", {1, 0, 0, 1}};
  const std::pair<std::string, std::vector<double>> s = {"f32[batch, seq, 2]", {0, 1, 1, 0}};
  EXPECT_VALUES(
      Compute("%y: f32[batch, seq, 1, 5] = rope(%a, %b, %c) {interleaved = false}", {x, c, s}), 1,
      -4, 3, 2, 5, -8, 7, 6, 9, 10);
  EXPECT_VALUES(
      Compute("%y: f32[batch, seq, 1, 5] = rope(%a, %b, %c) {interleaved = true}", {x, c, s}), 1, 2,
      -4, 3, 5, -7, 6, 8, 9, 10);
}

TEST(GraphOps, RotaryTable) {
  EXPECT_VALUES(
      Compute("%y: f32[batch, seq, 2] = rotary_table(%a, none) {sine = true, scale = 2.0, "
              "dynamic_factor = 0.0, dynamic_length = 0}",
              {{"f32[2]", {1, 0.5}}}),
      0, 0, 2 * std::sin(1.0), 2 * std::sin(0.5));
}

// seq 2 of a plain length of 1: stretch 1 + 3 * (2 / 1 - 1) = 4; the last frequency is divided by
// all of it.
TEST(GraphOps, DynamicRotaryTable) {
  EXPECT_VALUES(Compute("%y: f32[batch, seq, 3] = rotary_table(%a, none) {sine = true, scale = "
                        "1.0, dynamic_factor = "
                        "3.0, dynamic_length = 1}",
                        {{"f32[3]", {1, 1, 1}}}),
                0, 0, 0, std::sin(1.0), std::sin(0.5), std::sin(0.25));
}

TEST(GraphOps, HeadsAreViews) {
  EXPECT_VALUES(
      Compute("%y: f32[1, 1, 2, 1] = split_heads(%a) {first = 1, heads = 2, head_dim = 1}",
              {{"f32[1, 1, 4]", {1, 2, 3, 4}}}),
      2, 3);
  EXPECT_VALUES(Compute("%y: f32[1, 1, 4] = merge_heads(%a)", {{"f32[1, 1, 2, 2]", {1, 2, 3, 4}}}),
                1, 2, 3, 4);
}

TEST(GraphOps, AttentionIsCausalWithWindowGroupsAndSoftcap) {
  // Two query heads on one key head; all scores equal: the mean of the values seen.
  const std::pair<std::string, std::vector<double>> q = {"f32[batch, seq, 2, 1]", {0, 0, 0, 0}};
  const std::pair<std::string, std::vector<double>> k = {"f32[batch, seq, 1, 1]", {5, 6}};
  const std::pair<std::string, std::vector<double>> v = {"f32[batch, seq, 1, 1]", {2, 4}};
  const std::string op =
      "%y: f32[batch, seq, 2, 1] = attention(%a, %b, %c, none) {scale = 1.0, window = ";
  EXPECT_VALUES(Compute(op + "0, softcap = 0.0}", {q, k, v}), 2, 2, 3, 3);
  EXPECT_VALUES(Compute(op + "1, softcap = 0.0}", {q, k, v}), 2, 2, 4, 4);
  // Scores 100 and 200 under a cap of 1 are nearly equal; without it the larger takes all.
  const std::pair<std::string, std::vector<double>> one = {"f32[batch, seq, 2, 1]", {1, 1, 1, 1}};
  const std::pair<std::string, std::vector<double>> far = {"f32[batch, seq, 1, 1]", {100, 200}};
  EXPECT_VALUES(Compute(op + "0, softcap = 0.0}", {one, far, v}), 2, 2, 4, 4);
  EXPECT_VALUES(Compute(op + "0, softcap = 1.0}", {one, far, v}), 2, 2, 3, 3);
}

TEST(GraphOps, Activations) {
  const auto run = [](const std::string& kind) {
    return Compute("%y: f32[2] = activation(%a) {kind = " + kind + "}", {{"f32[2]", {-1, 2}}});
  };
  EXPECT_VALUES(run("silu"), -1 / (1 + std::exp(1.0)), 2 / (1 + std::exp(-2.0)));
  EXPECT_VALUES(run("gelu"), -0.15865525393145707, 1.9544997361036416);
  EXPECT_VALUES(run("gelu_tanh"), -0.15880800939172324, 1.954597694087775);
  EXPECT_VALUES(run("relu"), 0, 2);
  EXPECT_VALUES(run("tanh"), std::tanh(-1.0), std::tanh(2.0));
  EXPECT_VALUES(run("sigmoid"), 1 / (1 + std::exp(1.0)), 1 / (1 + std::exp(-2.0)));
}

TEST(GraphOps, PointwiseAndConcat) {
  const std::pair<std::string, std::vector<double>> a = {"f32[2]", {1, 2}},
                                                    b = {"f32[2]", {10, 20}};
  EXPECT_VALUES(Compute("%y: f32[2] = add(%a, %b)", {a, b}), 11, 22);
  EXPECT_VALUES(Compute("%y: f32[2] = multiply(%a, %b)", {a, b}), 10, 40);
  EXPECT_VALUES(Compute("%y: f32[2] = scale(%a) {factor = 0.5}", {a}), 0.5, 1);
  EXPECT_VALUES(Compute("%y: f32[2] = softcap(%a) {cap = 4.0}", {a}), 4 * std::tanh(0.25),
                4 * std::tanh(0.5));
  EXPECT_VALUES(Compute("%y: f32[4] = concat(%b, %a)", {a, b}), 10, 20, 1, 2);
}

// Inputs and results are rounded to their own dtypes, and only if the run asks for it.
TEST(GraphOps, StorageRounding) {
  const std::pair<std::string, std::vector<double>> a = {"bf16[1]", {1.001}},
                                                    b = {"f32[1]", {0.001}};
  EXPECT_VALUES(Compute("%y: bf16[1] = add(%a, %b)", {a, b}, true), 1);
  EXPECT_VALUES(Compute("%y: bf16[1] = add(%a, %b)", {a, b}, false), 1.002);
  EXPECT_VALUES(Compute("%y: f32[1] = add(%a, %b)", {a, b}, true), static_cast<float>(1 + 0.001f));
}

TEST(RunModule, RefusalsNameTheValue) {
  absl::StatusOr<ir::GraphModule> module = ir::ParseGraph(
      "hackc graph 1\nmodule \"m\"\nsymbol seq in 1..4\ninput %x: f32[seq]\nweight %w: f32[3] "
      "\"a.w\"\n"
      "output (%x)\n");
  ASSERT_OK(module);
  RunInputs run;
  const auto message = [&] { return std::string(RunGraph(*module, run).status().message()); };
  EXPECT_EQ(message(), "symbol seq: expected a value in 1..4");
  run.symbols["seq"] = 5;
  EXPECT_EQ(message(), "symbol seq: expected a value in 1..4");
  run.symbols["seq"] = 2;
  EXPECT_EQ(message(), "input x: is missing");
  run.inputs["x"] = TensorData::Zeros(ir::DType::kF32, {3});
  EXPECT_EQ(message(), "input x: expected f32[2], got f32[3]");
  run.inputs["x"] = TensorData::Zeros(ir::DType::kF32, {2});
  EXPECT_EQ(message(), "weights: none are given");
  const TensorData weight = TensorData::Zeros(ir::DType::kF32, {1, 3});
  run.weights = [&](const std::string&) { return &weight; };
  EXPECT_EQ(message(), "weight a.w: expected f32[3], got f32[1, 3]");
}

TEST(RunModule, LayerNumbersReplacePlaceholders) {
  EXPECT_EQ(WithLayer("h.{layer}.w", 7), "h.7.w");
  EXPECT_EQ(WithLayer("h.{layer+12}.{layer}.w", 8), "h.20.8.w");
  EXPECT_EQ(WithLayer("norm", 7), "norm");
}

}  // namespace
}  // namespace hackc::interp
