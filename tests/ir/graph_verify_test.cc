// SPDX-License-Identifier: MIT
// Each rule of the Graph verifier by a change to a valid module that breaks just it.
#include "compiler/ir/graph_verify.h"

#include <string>
#include <vector>

#include "compiler/ir/graph_text.h"
#include "gmock/gmock.h"
#include "tests/ir/graph_sample.h"

namespace hackc::ir {
namespace {

using testing::Contains;
using testing::ElementsAre;

// The errors of the sample with the first `from` replaced by `to`.
std::vector<std::string> ErrorsAfter(const std::string& from, const std::string& to) {
  std::string text = kEveryGraphOp;
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  if (at == text.npos) return {};
  text.replace(at, from.size(), to);
  absl::StatusOr<GraphModule> module = ParseGraph(text);
  EXPECT_TRUE(module.ok()) << module.status();
  return module.ok() ? VerifyGraph(*module) : std::vector<std::string>();
}

TEST(GraphVerify, EachRuleNamesItsPlace) {
  const struct {
    std::string from, to, error;
  } table[] = {
      {"symbol past in 0..96", "symbol past in 9..8",
       "symbol past: expected 0 <= min <= max <= 2147483647, got 9..8 [symbol]"},
      {"symbol seq in 1..32", "symbol seq in 1..32\nsymbol seq in 1..32",
       "symbol seq: declared twice [symbol]"},
      {"%up: bf16", "%gated: bf16", "segment layers / %gated: %gated is defined twice [unique]"},
      {"split_heads(%query)", "split_heads(%scores)",
       "segment layers / %query_heads: %scores is not defined here [defined]"},
      {"split_heads(%query)", "split_heads(%merged)",
       "segment layers / %query_heads: %merged is not defined here [defined]"},
      {"carry (%x = %embedded)", "carry (%x = %logits)",
       "segment layers / carry %x: %logits is not defined here [defined]"},
      {"yield (%scaled)", "yield (%gone)",
       "segment layers / yield %gone: is not defined here [defined]"},
      {"yield (%scaled)", "yield (%gated)",
       "segment layers / yield %gated: has another type than carry %x [carry]"},
      {"yield (%scaled)", "yield ()", "segment layers: carries 1 values and yields 0 [carry]"},
      {"(%hidden)", "()", "segment layers: yields 1 values into 0 results [result]"},
      {"repeat 3", "repeat 0",
       "segment layers: expected count >= 1, first layer >= 0 and step >= 1 [repeat]"},
      {"segment embed: repeat 1", "segment embed: repeat 2",
       "segment embed: repeats 2 times and carries nothing [repeat]"},
      {"segment head", "segment embed", "segment embed: defined twice [unique]"},
      {"output (%logits)", "output (%capped)", "output %capped: is not defined here [output]"},
      {"output (%logits)", "output (%logits, %logits)", "output %logits: is listed twice [output]"},
      {"output (%logits)", "output ()", "output: the module has none [output]"},
      {"%merged: bf16[batch, seq, 16]", "%merged: bf16[batch, seq, (past * 16)]",
       "segment layers / %merged: extent (past * 16) is not positive within the symbols' bounds "
       "[shape]"},
      {"{layer+1}", "{layer+2}",
       "segment layers / %norm_bias: \"layers.{layer+2}.norm.bias\" does not name a layer as "
       "{layer}, or "
       "{layer+K} with 0 < K < step, inside a segment [weight]"},
      {"\"embed.weight\"", "\"\"", "%table: has no name in the checkpoint [weight]"},
      {"bf16[50, 16] \"embed", "bf16[seq, 16] \"embed",
       "%table: a weight's extents are constant [weight]"},
      {"[1.0, 0.1]", "[1.0]",
       "%frequencies: has 1 values, which does not fit its shape [constant]"},
      {"[1.0, 0.1]", "[1.0, inf]", "%frequencies: has a value that is not finite [constant]"},
      {"input %input_ids: i32", "input %input_ids: f32",
       "segment embed / %embedding: ids are not i32 or i64 [float]"},
      {"%up: bf16", "%up: i32", "segment layers / %up: the result is not a float [float]"},
      {"linear(%normed, %joined, none)", "linear(none, %joined, none)",
       "segment layers / %key_value: operand x is absent [operand]"},
      {"epsilon = 1e-06", "epsilon = -1.0",
       "segment layers / %normed: epsilon is not finite and >= 0 [attribute]"},
      {"window = 8", "window = -8",
       "segment layers / %attended: expected a finite scale, window >= 0 and a finite softcap >= 0 "
       "[attribute]"},
      {"dynamic_length = 64", "dynamic_length = 0",
       "segment embed / %sine_table: dynamic_factor and dynamic_length are not both 0 or both "
       "positive "
       "[attribute]"},
      {"cap = 30.0", "cap = 0.0",
       "segment head / %capped: cap is not finite and positive [attribute]"},
      {"factor = 0.22", "factor = inf",
       "segment layers / %scaled: factor is not finite [attribute]"},
      {"%embedding: bf16[batch, seq, 16]", "%embedding: bf16[batch, seq, 32]",
       "segment embed / %embedding: the result is bf16[batch, seq, 32]; expected bf16[batch, seq, "
       "16] "
       "[embedding]"},
      {"%up_weight: bf16[16, 24]", "%up_weight: bf16[18, 24]",
       "segment layers / %up: %centred has extent 16; expected 18 [linear]"},
      {"%query_bias: bf16[16]", "%query_bias: bf16[8]",
       "segment layers / %query: %query_bias has extent 8; expected 16 [linear]"},
      {"{transposed = true}", "{transposed = false}",
       "segment layers / %up: %centred has extent 16; expected 24 [linear]"},
      {"%norm_weight: bf16[16]", "%norm_weight: bf16[15]",
       "segment layers / %normed: %norm_weight has extent 15; expected 16 [norm]"},
      {"%sine_table: f32[batch, seq, 2]", "%sine_table: f32[batch, seq, 3]",
       "segment embed / %sine_table: the result is f32[batch, seq, 3]; expected f32[batch, seq, 2] "
       "[rotary_table]"},
      {"%frequencies: f32[2] [1.0, 0.1]", "%frequencies: f32[5] [1.0, 0.1, 0.1, 0.1, 0.1]",
       "segment embed / %sine_table: the result is f32[batch, seq, 2]; expected f32[batch, seq, 5] "
       "[rotary_table]"},
      {"rope(%key, %cosine, %sine)", "rope(%key, %cosine, %embedded)",
       "segment layers / %turned_key: cosine and sine are not f32 of one shape [rope]"},
      {"first = 8", "first = 9", "segment layers / %value: ends at feature 17 of 16 [heads]"},
      {"%merged: bf16[batch, seq, 16]", "%merged: bf16[batch, seq, 8]",
       "segment layers / %merged: the result is bf16[batch, seq, 8]; expected bf16[batch, seq, 16] "
       "[heads]"},
      {"attention(%turned, %keys, %values)", "attention(%turned, %turned_key, %values)",
       "segment layers / %attended: %turned_key has extent seq; expected (past + seq) [attention]"},
      {"attention(%turned, %keys, %values)", "attention(%turned, %turned_key, %values)",
       "segment layers / %attended: k and v differ in shape [attention]"},
      {"state %key_cache: bf16[batch, 128", "state %key_cache: bf16[batch, 127",
       "segment layers / %keys: (past + seq) positions may exceed the capacity 127 [cache]"},
      {"cache_append(%value_cache", "cache_append(%key_cache",
       "segment layers / %values: %key_cache is appended to twice [cache]"},
      {"cache_append(%value_cache", "cache_append(%value",
       "segment layers / %values: %value is not a state [cache]"},
      {"multiply(%active, %up)", "multiply(%active, %centred)",
       "segment layers / %gated: %centred is bf16[batch, seq, 16], the result bf16[batch, seq, 24] "
       "[pointwise]"},
      {"concat(%key_weight, %value_weight)", "concat(%key_weight, %up_weight)",
       "segment layers / %joined: %up_weight differs beyond the first dim [concat]"},
      {"concat(%key_weight, %value_weight)", "concat()",
       "segment layers / %joined: concat has no inputs [operand]"},
      {"%joined: bf16[16, 16]", "%joined: f32[16, 16]",
       "segment layers / %joined: %key_weight has another dtype [view]"},
  };
  for (const auto& entry : table) {
    EXPECT_THAT(ErrorsAfter(entry.from, entry.to), Contains(entry.error)) << entry.to;
  }
}

TEST(GraphVerify, StateIsReadByCacheAppendOnly) {
  EXPECT_THAT(
      ErrorsAfter("attention(%turned, %keys, %values)", "attention(%turned, %key_cache, %values)"),
      Contains("segment layers / %attended: state %key_cache is read by something else than "
               "cache_append [cache]"));
}

TEST(GraphVerify, AllErrorsAreReported) {
  absl::StatusOr<GraphModule> module = ParseGraph(
      "hackc graph 1\nmodule \"m\"\ninput %x: f32[4]\n"
      "segment s: repeat 1 from 0 step 1 carry () {\n"
      "  %y: f32[5] = scale(%x) {factor = 2.0}\n  %z: f32[4] = add(%x, %w)\n  yield (%y)\n} -> "
      "(%o)\n"
      "output (%p)\n");
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(VerifyGraph(*module),
              ElementsAre("segment s / %y: %x is f32[4], the result f32[5] [pointwise]",
                          "segment s / %z: %w is not defined here [defined]",
                          "output %p: is not defined here [output]"));
}

}  // namespace
}  // namespace hackc::ir
