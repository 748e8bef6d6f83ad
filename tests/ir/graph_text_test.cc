// SPDX-License-Identifier: MIT
#include "compiler/ir/graph_text.h"

#include "compiler/ir/graph_verify.h"
#include "gmock/gmock.h"
#include "tests/ir/graph_sample.h"

namespace hackc::ir {
namespace {

using testing::IsEmpty;

TEST(GraphText, PrintedTextIsAFixedPoint) {
  absl::StatusOr<GraphModule> module = ParseGraph(kEveryGraphOp);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(Print(*module), kEveryGraphOp);
  EXPECT_THAT(VerifyGraph(*module), IsEmpty());
}

// The sample has every kind, so a kind that loses a field in either direction shows above.
TEST(GraphText, SampleHasEveryOperation) {
  absl::StatusOr<GraphModule> module = ParseGraph(kEveryGraphOp);
  ASSERT_TRUE(module.ok());
  std::set<size_t> kinds;
  for (const GraphSegment& segment : module->segments) {
    for (const GraphOp& op : segment.ops) kinds.insert(op.op.index());
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<GraphOpVariant>);
}

TEST(GraphText, ParsedFieldsAreWhatTheTextSays) {
  absl::StatusOr<GraphModule> module = ParseGraph(kEveryGraphOp);
  ASSERT_TRUE(module.ok());
  EXPECT_EQ(module->name, "every \"op\"");
  EXPECT_EQ(module->symbols[1], (SymbolDecl{"seq", 1, 32}));
  EXPECT_EQ(module->sources[5].data, (std::vector<double>{1.0, 0.1}));
  const GraphSegment& layers = module->segments[1];
  EXPECT_EQ(layers.count, 3);
  EXPECT_EQ(layers.first_layer, 2);
  EXPECT_EQ(layers.layer_step, 2);
  const auto& attention = std::get<GraphAttention>(
      std::find_if(layers.ops.begin(), layers.ops.end(), [](const GraphOp& op) {
        return op.out == "attended";
      })->op);
  EXPECT_EQ(attention.k, "keys");
  EXPECT_EQ(attention.scale, 0.35355339059327373);
  EXPECT_EQ(attention.window, 8);
  EXPECT_EQ(attention.softcap, 50.0);
  EXPECT_THAT(Operands(layers.ops.front()), testing::ElementsAre("x", "norm_weight"));
}

TEST(GraphText, ErrorsNameLineColumnAndWhatWasExpected) {
  const auto error = [](const std::string& text) {
    const absl::Status status = ParseGraph(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(error("hackc graph 1\nmodule \"m\"\n  bad"),
            "line 3, column 3: expected `output`, got `bad`");
  const std::string start =
      "hackc graph 1\nmodule \"m\"\ninput %x: f32[4]\nsegment s: repeat 1 from 0 "
      "step 1 carry () {\n";
  EXPECT_EQ(error(start + "  %y: f32[4] = frobnicate(%x)\n"),
            "line 5, column 16: `frobnicate` is not a Graph operation");
  EXPECT_EQ(error(start + "  %y: f32[4] = scale(x)\n"),
            "line 5, column 22: expected a value such as %x, or none, got `x`");
  EXPECT_EQ(error(start + "  %y: f32[4] = scale(%x) {cap = 1.0}\n"),
            "line 5, column 27: expected `factor`, got `cap`");
  EXPECT_EQ(error(start + "  %y: f32[n] = scale(%x) {factor = 1.0}\n").substr(0, 18),
            "line 5, column 11:");
}

// No prefix of a text, and no text with one character changed, may do anything but parse or be
// refused.
TEST(GraphText, MutilatedTextIsRefusedOrParses) {
  const std::string text = kEveryGraphOp;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    EXPECT_FALSE(ParseGraph(std::string_view(text).substr(0, i)).ok());
    std::string changed = text;
    changed[i] = std::string_view("(%9\"\0", 5)[i % 5];
    if (const auto module = ParseGraph(changed); module.ok()) VerifyGraph(*module);
  }
}

}  // namespace
}  // namespace hackc::ir
