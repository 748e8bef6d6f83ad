// SPDX-License-Identifier: MIT
// A Graph module with every operation, valid and in canonical text.
#pragma once

namespace hackc::ir {

inline constexpr char kEveryGraphOp[] = R"(hackc graph 1
module "every \"op\""
symbol batch in 1..4
symbol seq in 1..32
symbol past in 0..96
symbol pages in 1..40
input %past_lengths: i32[batch]
input %page_table: i32[batch, 8]
input %last_positions: i32[batch]
input %input_ids: i32[batch, seq]
weight %table: bf16[50, 16] "embed.weight"
constant %frequencies: f32[2] [1.0, 0.1]

segment embed: repeat 1 from 0 step 1 carry () {
  %embedding: bf16[batch, seq, 16] = embedding(%input_ids, %table)
  %cosine_table: f32[batch, seq, 2] = rotary_table(%frequencies, %past_lengths) {sine = false, scale = 1.5, dynamic_factor = 0.0, dynamic_length = 0}
  %sine_table: f32[batch, seq, 2] = rotary_table(%frequencies, %past_lengths) {sine = true, scale = 1.5, dynamic_factor = 2.0, dynamic_length = 64}
  yield (%embedding, %cosine_table, %sine_table)
} -> (%embedded, %cosine, %sine)

segment layers: repeat 3 from 2 step 2 carry (%x = %embedded) {
  weight %norm_weight: bf16[16] "layers.{layer}.norm.weight"
  weight %norm_bias: bf16[16] "layers.{layer+1}.norm.bias"
  weight %key_weight: bf16[8, 16] "layers.{layer}.k.weight"
  weight %value_weight: bf16[8, 16] "layers.{layer}.v.weight"
  weight %query_weight: bf16[16, 16] "layers.{layer}.q.weight"
  weight %query_bias: bf16[16] "layers.{layer}.q.bias"
  weight %up_weight: bf16[16, 24] "layers.{layer}.up.weight"
  weight %down_weight: bf16[16, 24] "layers.{layer}.down.weight"
  state %key_cache: bf16[batch, 128, 1, 8] "layers.{layer}.keys"
  state %value_cache: bf16[pages, 16, 1, 8] "layers.{layer}.values"
  %normed: bf16[batch, seq, 16] = rms_norm(%x, %norm_weight) {epsilon = 1e-06, weight_offset = 1.0}
  %joined: bf16[16, 16] = concat(%key_weight, %value_weight)
  %key_value: bf16[batch, seq, 16] = linear(%normed, %joined, none) {transposed = false}
  %query: bf16[batch, seq, 16] = linear(%normed, %query_weight, %query_bias) {transposed = false}
  %query_heads: bf16[batch, seq, 2, 8] = split_heads(%query) {first = 0, heads = 2, head_dim = 8}
  %key: bf16[batch, seq, 1, 8] = split_heads(%key_value) {first = 0, heads = 1, head_dim = 8}
  %value: bf16[batch, seq, 1, 8] = split_heads(%key_value) {first = 8, heads = 1, head_dim = 8}
  %turned: bf16[batch, seq, 2, 8] = rope(%query_heads, %cosine, %sine) {interleaved = true}
  %turned_key: bf16[batch, seq, 1, 8] = rope(%key, %cosine, %sine) {interleaved = false}
  %keys: bf16[batch, (past + seq), 1, 8] = cache_append(%key_cache, %turned_key, %past_lengths, none)
  %values: bf16[batch, (past + seq), 1, 8] = cache_append(%value_cache, %value, %past_lengths, %page_table)
  %attended: bf16[batch, seq, 2, 8] = attention(%turned, %keys, %values, %past_lengths) {scale = 0.35355339059327373, window = 8, softcap = 50.0}
  %merged: bf16[batch, seq, 16] = merge_heads(%attended)
  %sum: bf16[batch, seq, 16] = add(%x, %merged)
  %centred: bf16[batch, seq, 16] = layer_norm(%sum, %norm_weight, %norm_bias) {epsilon = 1e-05}
  %up: bf16[batch, seq, 24] = linear(%centred, %up_weight, none) {transposed = true}
  %active: bf16[batch, seq, 24] = activation(%up) {kind = gelu_tanh}
  %gated: bf16[batch, seq, 24] = multiply(%active, %up)
  %down: bf16[batch, seq, 16] = linear(%gated, %down_weight, none) {transposed = false}
  %scaled: bf16[batch, seq, 16] = scale(%down) {factor = 0.22}
  yield (%scaled)
} -> (%hidden)

segment head: repeat 1 from 0 step 1 carry () {
  %last: bf16[batch, 1, 16] = take_positions(%hidden, %last_positions)
  %scores: f32[batch, 1, 50] = linear(%last, %table, none) {transposed = false}
  %capped: f32[batch, 1, 50] = softcap(%scores) {cap = 30.0}
  yield (%capped)
} -> (%logits)

output (%logits)
)";

}  // namespace hackc::ir
