// SPDX-License-Identifier: MIT
#include "compiler/passes/pipeline.h"

#include <fstream>
#include <sstream>

#include "compiler/frontend/frontend.h"
#include "compiler/ir/graph_text.h"
#include "compiler/support/replay.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hackc::passes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kGraph[] = R"(hackc graph 1
module "small"
symbol batch in 1..1
symbol seq in 1..16
input %x: f32[batch, seq, 32]
weight %w: f32[64, 32] "w"

segment only: repeat 1 from 0 step 1 carry () {
  %y: f32[batch, seq, 64] = linear(%x, %w, none) {transposed = false}
  yield (%y)
} -> (%logits)

output (%logits)
)";

TEST(Pipeline, RunsThePassesInTheOrderOfTheTable) {
  auto graph = ir::ParseGraph(kGraph);
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<std::string> seen, table;
  for (const Pass& pass : ModulePasses()) table.emplace_back(pass.name);
  auto lowered = LowerModule(*graph);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  for (const auto& [pass, milliseconds] : lowered->times) seen.push_back(pass);
  EXPECT_EQ(seen, table);
  EXPECT_EQ(lowered->graph.name, "small");
  EXPECT_FALSE(lowered->tensor.segments.empty());
  ASSERT_EQ(lowered->loops.segments.size(), 1u);
  EXPECT_EQ(lowered->loops.segments[0].ops.size(), 1u);
}

TEST(Pipeline, AnInvalidGraphIsAnInternalErrorWithItsText) {
  auto graph = ir::ParseGraph(kGraph);
  ASSERT_TRUE(graph.ok());
  graph->segments[0].ops[0].type.shape[2] = ir::IntLit(63);
  absl::Status status = LowerModule(*graph).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              testing::StartsWith("pass front end: line 9: segment only / %y: "));
  const std::string text = ReplayText(status).value_or("");
  EXPECT_THAT(text, testing::StartsWith("# pass: none  verify: yes\nhackc graph 1\n"));
  EXPECT_THAT(text, HasSubstr("f32[batch, seq, 63]"));
}

}  // namespace
}  // namespace hackc::passes
