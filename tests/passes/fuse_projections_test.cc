// SPDX-License-Identifier: MIT
#include "compiler/passes/graph/fuse_projections.h"

#include <gmock/gmock.h>

#include "compiler/ir/graph_text.h"
#include "compiler/ir/graph_verify.h"
#include "tests/passes/operation_lines.h"

namespace hackc::passes {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string Source(std::string_view query_bias, std::string_view readers) {
  return std::string(R"(hackc graph 1
module "m"
symbol batch in 1..2
symbol seq in 1..9
input %x: bf16[batch, seq, 8]

segment s: repeat 1 from 0 step 1 carry () {
  weight %wq: bf16[12, 8] "layers.0.q_proj.weight"
  weight %bq: bf16[12] "layers.0.q_proj.bias"
  weight %wk: bf16[4, 8] "layers.0.k_proj.weight"
  weight %bk: bf16[4] "layers.0.k_proj.bias"
  %q: bf16[batch, seq, 12] = linear(%x, %wq, )") +
         std::string(query_bias) + R"() {transposed = false}
  %k: bf16[batch, seq, 4] = linear(%x, %wk, %bk) {transposed = false}
  %qh: bf16[batch, seq, 3, 4] = split_heads(%q) {first = 0, heads = 3, head_dim = 4}
  %kh: bf16[batch, seq, 1, 2] = split_heads(%k) {first = 2, heads = 1, head_dim = 2}
)" + std::string(readers) +
         "} -> (%a, %b)\n\noutput (%a, %b)\n";
}

std::vector<std::string> Fused(const std::string& text) {
  auto graph = ir::ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  ir::GraphModule fused = FuseProjections(*graph);
  EXPECT_THAT(ir::VerifyGraph(fused), IsEmpty());
  return test::OperationLines(ir::Print(fused));
}

TEST(FuseProjections, SiblingsBecomeOneLinear) {
  EXPECT_THAT(
      Fused(Source("%bq", "  yield (%qh, %kh)\n")),
      ElementsAre(
          "%qk_weight: bf16[16, 8] = concat(%wq, %wk)", "%qk_bias: bf16[16] = concat(%bq, %bk)",
          "%qk: bf16[batch, seq, 16] = linear(%x, %qk_weight, %qk_bias) {transposed = false}",
          "%qh: bf16[batch, seq, 3, 4] = split_heads(%qk) {first = 0, heads = 3, head_dim = 4}",
          "%kh: bf16[batch, seq, 1, 2] = split_heads(%qk) {first = 14, heads = 1, head_dim = 2}"));
}

TEST(FuseProjections, OnlyAllOrNoBiases) {
  EXPECT_EQ(Fused(Source("none", "  yield (%qh, %kh)\n")).size(), 4);
}

TEST(FuseProjections, AValueThatIsReadWholeStays) {
  EXPECT_EQ(
      Fused(Source("%bq",
                   "  %r: bf16[batch, seq, 4] = activation(%k) {kind = relu}\n  yield (%qh, %r)\n"))
          .size(),
      5);
  EXPECT_EQ(Fused(Source("%bq", "  yield (%qh, %k)\n")).size(), 4);
}

}  // namespace
}  // namespace hackc::passes
