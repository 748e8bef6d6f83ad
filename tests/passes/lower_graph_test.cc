// SPDX-License-Identifier: MIT
#include "compiler/passes/tensor/lower_graph.h"

#include <gmock/gmock.h>

#include "compiler/ir/graph_text.h"
#include "compiler/ir/graph_verify.h"
#include "compiler/ir/tensor_text.h"
#include "compiler/ir/tensor_verify.h"
#include "compiler/passes/tensor/dead_values.h"
#include "compiler/passes/tensor/inline_views.h"
#include "tests/passes/operation_lines.h"

namespace hackc::passes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kPreamble = R"(hackc graph 1
module "m"
symbol batch in 1..2
symbol seq in 1..9
symbol past in 0..7
input %past_lengths: i32[batch]
input %page_table: i32[batch, 4]
input %ids: i32[batch, seq]
input %x: bf16[batch, seq, 8]
input %y: bf16[batch, seq, 8]
input %heads: f16[batch, seq, 4, 6]
input %keys: f16[batch, (past + seq), 2, 6]
input %cosine: f32[batch, seq, 2]
input %sine: f32[batch, seq, 2]
weight %table: bf16[10, 8] "model.embed_tokens.weight"
weight %w: bf16[5, 8] "model.layers.0.mlp.up_proj.weight"
weight %bias: bf16[5] "model.layers.0.mlp.up_proj.bias"
weight %scale: bf16[8] "model.norm.weight"
state %cache: f16[batch, 16, 4, 6] "cache"

segment s: repeat 1 from 0 step 1 carry () {
)";

ir::TensorModule Lower(const std::string& op, std::string_view result = "%out") {
  std::string text(kPreamble);
  text +=
      "  " + op + "\n  yield (" + std::string(result) + ")\n} -> (%result)\n\noutput (%result)\n";
  auto graph = ir::ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  EXPECT_THAT(ir::VerifyGraph(*graph), IsEmpty());
  ir::TensorModule tensor = LowerGraph(*graph);
  EXPECT_THAT(ir::VerifyTensor(tensor), IsEmpty()) << ir::Print(tensor);
  return tensor;
}

std::vector<std::string> Ops(const ir::TensorModule& module) {
  return test::OperationLines(ir::Print(module));
}

TEST(LowerGraph, LinearSumsInF32AndRoundsOnce) {
  EXPECT_THAT(
      Ops(Lower("%out: bf16[batch, seq, 5] = linear(%x, %w, %bias) {transposed = false}")),
      ElementsAre("%out.sum: f32[batch, seq, 5] = contract \"up_linear\" [b in batch, s in seq, c "
                  "in 5] over [k in 8] "
                  "(f32(@x[%b, %s, %k]), f32(@w[%c, %k]))",
                  "%out: bf16[batch, seq, 5] = map \"up_linear\" [b in batch, s in seq, c in 5] "
                  "bf16((@out.sum[%b, %s, %c] + f32(@bias[%c])))"));
}

TEST(LowerGraph, F32LinearWithoutBiasIsOneContract) {
  EXPECT_THAT(
      Ops(Lower("%out: f32[batch, seq, 5] = linear(%x, %w, none) {transposed = false}")).size(), 1);
}

TEST(LowerGraph, NormHasOneStatisticPerRow) {
  EXPECT_THAT(
      Ops(Lower("%out: bf16[batch, seq, 8] = rms_norm(%x, %scale) {epsilon = 1e-05, weight_offset "
                "= 1.0}")),
      ElementsAre("%out.squares: f32[batch, seq] = reduce sum \"final_norm\" [b in batch, s in "
                  "seq] over [k in 8] "
                  "((f32(@x[%b, %s, %k]) * f32(@x[%b, %s, %k])))",
                  "%out.scale: f32[batch, seq] = map \"final_norm\" [b in batch, s in seq] "
                  "rsqrt(((@out.squares[%b, %s] / 8.0) + 1e-05))",
                  "%out: bf16[batch, seq, 8] = map \"final_norm\" [b in batch, s in seq, c in 8] "
                  "bf16(((f32(@x[%b, %s, %c]) * @out.scale[%b, %s]) * (f32(@scale[%c]) + 1.0)))"));
}

TEST(LowerGraph, IdsAreClampedIntoTheTable) {
  EXPECT_THAT(
      Ops(Lower("%out: bf16[batch, seq, 8] = embedding(%ids, %table)")),
      ElementsAre("%out: bf16[batch, seq, 8] = gather \"embedding\" [b in batch, s in seq, c in 8] "
                  "@table[max(min(@ids[%b, %s], 9), 0), %c]"));
}

// 2 * half = 4 of 6 dims turn; the others pass, unrounded by arithmetic.
TEST(LowerGraph, PartialRope) {
  EXPECT_THAT(
      Ops(Lower(
          "%out: f16[batch, seq, 4, 6] = rope(%heads, %cosine, %sine) {interleaved = false}")),
      ElementsAre(HasSubstr(
          "f16(select((%d < 4), ((f32(@heads[%b, %s, %h, %d]) * @cosine[%b, %s, (%d % 2)]) + "
          "((select((%d < 2), -1.0, 1.0) * f32(@heads[%b, %s, %h, ((%d + 2) % 4)])) * "
          "@sine[%b, %s, (%d % 2)])), f32(@heads[%b, %s, %h, %d])))")));
}

TEST(LowerGraph, InterleavedRopeVerifies) {
  EXPECT_THAT(
      Ops(Lower("%out: f16[batch, seq, 4, 6] = rope(%heads, %cosine, %sine) {interleaved = true}")),
      ElementsAre(HasSubstr("select(((%d % 2) == 0), -1.0, 1.0)")));
}

// Causality is the extent of the sum: key t exists up to past + s.
TEST(LowerGraph, AttentionIsOneSoftmaxSum) {
  std::vector<std::string> ops = Ops(Lower(
      "%out: f16[batch, seq, 4, 6] = attention(%heads, %keys, %keys, %past_lengths) {scale = 0.5, "
      "window = 3, softcap = 2.0}"));
  ASSERT_EQ(ops.size(), 4);
  EXPECT_THAT(
      ops[0],
      HasSubstr(
          "contract \"attention\" [b in batch, s in seq, h in 4, t in (past + seq)] over [d in 6] "
          "(f32(@heads[%b, %s, %h, %d]), f32(@keys[%b, %t, (%h // 2), %d]))"));
  EXPECT_THAT(ops[1], HasSubstr("select((((min(max(@past_lengths[%b], 0), past) + %s) - %t) < 3), "
                                "(tanh(((@out.products[%b, %s, %h, %t] * 0.5) / 2.0)) "
                                "* 2.0), -inf)"));
  EXPECT_THAT(
      ops[2],
      HasSubstr(
          "reduce softmax_sum \"attention\" [b in batch, s in seq, h in 4, e in 6] over "
          "[t in ((min(max(@past_lengths[%b], 0), past) + %s) + 1)] (@out.scores[%b, %s, %h, %t], "
          "f32(@keys[%b, %t, (%h // 2), %e]))"));
  EXPECT_THAT(ops[3], HasSubstr("f16(@out.sum[%b, %s, %h, %e])"));
}

TEST(LowerGraph, CacheAppendWritesAtThePast) {
  EXPECT_THAT(
      Ops(Lower("%out: f16[batch, (past + seq), 4, 6] = cache_append(%cache, %heads, "
                "%past_lengths, none)")),
      ElementsAre(HasSubstr("scatter \"cache_append\" [b in batch, s in 16, h in 4, d in 6] update "
                            "[b in batch, s in seq, h in 4, d in 6] @cache[%b, "
                            "(min(max(@past_lengths[%b], 0), past) + %s), %h, %d] <- "
                            "@heads[%b, %s, %h, %d]"),
                  HasSubstr("view")));
}

TEST(LowerGraph, EachActivation) {
  for (const auto& [kind, expected] : std::map<std::string, std::string>{
           {"silu", "bf16((f32(@x[%b, %s, %c]) / (1.0 + exp(neg(f32(@x[%b, %s, %c]))))))"},
           {"sigmoid", "bf16((1.0 / (1.0 + exp(neg(f32(@x[%b, %s, %c]))))))"},
           {"gelu", "erf((f32(@x[%b, %s, %c]) * 0.7071067811865475))"},
           {"gelu_tanh", "tanh((0.7978845608028654 * "},
           {"relu", "bf16(max(f32(@x[%b, %s, %c]), 0.0))"},
           {"tanh", "bf16(tanh(f32(@x[%b, %s, %c])))"}}) {
    EXPECT_THAT(Ops(Lower("%out: bf16[batch, seq, 8] = activation(%x) {kind = " + kind + "}")),
                ElementsAre(HasSubstr(expected)));
  }
}

TEST(InlineViews, ComposesAndSimplifiesIndices) {
  ir::TensorModule tensor =
      Lower(R"(%a: bf16[batch, seq, 2, 4] = split_heads(%x) {first = 0, heads = 2, head_dim = 4}
  %m: bf16[batch, seq, 8] = merge_heads(%a)
  %b: bf16[batch, seq, 1, 4] = split_heads(%m) {first = 4, heads = 1, head_dim = 4}
  %out: bf16[batch, seq, 1, 4] = scale(%b) {factor = 2.0})");
  ir::TensorModule inlined = DeadValues(InlineViews(tensor));
  EXPECT_THAT(ir::VerifyTensor(inlined), IsEmpty());
  EXPECT_THAT(Ops(inlined),
              ElementsAre(HasSubstr("bf16((f32(@x[%b, %s, (((%h * 4) + %d) + 4)]) * 2.0))")))
      << "index of a view of a view of a view";
}

TEST(InlineViews, ReturnedViewsStay) {
  ir::TensorModule tensor =
      Lower("%out: bf16[batch, seq, 2, 4] = split_heads(%x) {first = 0, heads = 2, head_dim = 4}");
  EXPECT_THAT(Ops(DeadValues(InlineViews(tensor))), ElementsAre(HasSubstr("view")));
}

TEST(DeadValues, KeepsStatesAndWhatTheyNeed) {
  ir::TensorModule tensor = Lower(R"(%double: f16[batch, seq, 4, 6] = scale(%heads) {factor = 2.0}
  %unused: f16[batch, seq, 4, 6] = scale(%heads) {factor = 3.0}
  %all: f16[batch, (past + seq), 4, 6] = cache_append(%cache, %double, %past_lengths, none)
  %out: bf16[batch, seq, 8] = add(%x, %y))");
  std::vector<std::string> names;
  const ir::TensorModule alive = DeadValues(tensor);
  for (const ir::TensorOp& op : alive.segments[0].ops) names.push_back(op.out);
  EXPECT_THAT(names, ElementsAre("double", "all.state", "out"));
}

}  // namespace
}  // namespace hackc::passes
