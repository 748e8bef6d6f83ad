// SPDX-License-Identifier: MIT
// Graph IR: the model as its architecture says it, and nothing of the GPU. Every operation computes
// in float32 (interpreter: float64) and rounds once, to the dtype of its output.
//
//   %q: bf16[batch, seq, 3584] = linear(%h, %wq, %bq)
//   %a: bf16[batch, seq, 28, 128] = attention(%q2, %k2, %v) {scale = 0.088, window = 0}
//
// Conventions: activations are [batch, seq, features] or [batch, seq, heads, head_dim]; weights are
// as the checkpoint holds them ([out, in] for linear).
//
// With a symbol `past` the module continues sequences. Operations that depend on positions then
// read `past_lengths`, i32[batch]: start(b) = past_lengths[b], clamped into 0..past, tokens of
// sequence b are in the cache already, and its token s stands at position start(b) + s. `past`
// itself is only their upper bound. Without the symbol the operand is absent and start(b) is 0.
//
// Strings and lists of strings are operands, every other field is an attribute:
//   for (const std::string& operand : Operands(op)) Use(operand);
//
// Thread safety: plain values; pure functions.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "compiler/ir/value.h"

namespace hackc::ir {

// out[b, s, :] = table[ids[b, s], :]; an id outside the table is clamped into it.
struct GraphEmbedding {
  std::string ids, table;
};
HACKC_FIELDS(GraphEmbedding, "embedding", ids, table)
// out[..., n] = sum_k x[..., k] * weight[n, k] + bias[n]; bias may be "". `transposed`: weight is
// [k, n].
struct GraphLinear {
  std::string x, weight, bias;
  bool transposed = false;
};
HACKC_FIELDS(GraphLinear, "linear", x, weight, bias, transposed)
// out = x / sqrt(mean(x^2) + epsilon) * (weight + weight_offset) over the last axis.
struct GraphRmsNorm {
  std::string x, weight;
  double epsilon = 1e-6;
  double weight_offset = 0;
};
HACKC_FIELDS(GraphRmsNorm, "rms_norm", x, weight, epsilon, weight_offset)
// out = (x - mean) / sqrt(variance + epsilon) * weight + bias over the last axis; bias may be "".
struct GraphLayerNorm {
  std::string x, weight, bias;
  double epsilon = 1e-5;
};
HACKC_FIELDS(GraphLayerNorm, "layer_norm", x, weight, bias, epsilon)
// out[b, s, j] = scale * cos or sin((start(b) + s) * inverse_frequencies[j]), f32.
// `inverse_frequencies` is a constant of rotary_dim / 2 values. With dynamic_factor > 0 the j-th of
// `half` is first divided by stretch^(j / (half - 1)), stretch = 1 + dynamic_factor * max(0,
// (start(b) + seq) / dynamic_length - 1).
struct GraphRotaryTable {
  std::string inverse_frequencies, past_lengths;
  bool sine = false;
  double scale = 1;
  double dynamic_factor = 0;
  int64_t dynamic_length = 0;
};
HACKC_FIELDS(GraphRotaryTable, "rotary_table", inverse_frequencies, past_lengths, sine, scale,
             dynamic_factor, dynamic_length)
// Rotates the first 2 * half dims of each head by the tables ([batch, seq, half], f32), the rest
// passes. interleaved: pairs (2j, 2j+1) instead of (j, j + half).
struct GraphRope {
  std::string x, cosine, sine;
  bool interleaved = false;
};
HACKC_FIELDS(GraphRope, "rope", x, cosine, sine, interleaved)
// View of `heads` heads of head_dim, from feature first on: [b, s, f] -> [b, s, heads, head_dim].
struct GraphSplitHeads {
  std::string x;
  int64_t first = 0;
  int64_t heads = 1;
  int64_t head_dim = 1;
};
HACKC_FIELDS(GraphSplitHeads, "split_heads", x, first, heads, head_dim)
// [b, s, heads, head_dim] -> [b, s, heads * head_dim].
struct GraphMergeHeads {
  std::string x;
};
HACKC_FIELDS(GraphMergeHeads, "merge_heads", x)
// Causal attention. q [b, s, hq, d], k and v [b, t, hk, d] with hq a multiple of hk, t = past +
// seq; query s sees keys up to start(b) + s, of these only the last `window` when window > 0.
// score = softcap(scale * q.k) where softcap(x) = c * tanh(x / c) when softcap > 0.
struct GraphAttention {
  std::string q, k, v, past_lengths;
  double scale = 1;
  int64_t window = 0;
  double softcap = 0;
};
HACKC_FIELDS(GraphAttention, "attention", q, k, v, past_lengths, scale, window, softcap)
// Writes x [b, s, h, d] at positions start(b) + s of the state `cache`; the output is the
// sequences' first past + seq positions, [b, past + seq, h, d], of which those from start(b) + seq
// on are arbitrary. The cache is [b, capacity, h, d], or, with a `page_table` i32[b, n], [pages,
// page_size, h, d]: position p of sequence b lies in page page_table[b, p / page_size]. What falls
// into a page outside 0..pages - 1 is not written and reads as 0.
struct GraphCacheAppend {
  std::string cache, x, past_lengths, page_table;
};
HACKC_FIELDS(GraphCacheAppend, "cache_append", cache, x, past_lengths, page_table)
// out[b, 0, :] = x[b, positions[b], :], [b, 1, features]; positions i32[b] are clamped into 0..seq
// - 1; absent, they are seq - 1.
struct GraphTakePositions {
  std::string x, positions;
};
HACKC_FIELDS(GraphTakePositions, "take_positions", x, positions)
enum class ActivationKind : uint8_t { kSilu, kGelu, kGeluTanh, kRelu, kTanh, kSigmoid };
HACKC_ENUM_NAMES(ActivationKind, "silu", "gelu", "gelu_tanh", "relu", "tanh", "sigmoid")
struct GraphActivation {
  std::string x;
  ActivationKind kind = ActivationKind::kSilu;
};
HACKC_FIELDS(GraphActivation, "activation", x, kind)
struct GraphMultiply {
  std::string a, b;
};
HACKC_FIELDS(GraphMultiply, "multiply", a, b)
struct GraphAdd {
  std::string a, b;
};
HACKC_FIELDS(GraphAdd, "add", a, b)
struct GraphScale {
  std::string x;
  double factor = 1;
};
HACKC_FIELDS(GraphScale, "scale", x, factor)
// c * tanh(x / c).
struct GraphSoftcap {
  std::string x;
  double cap = 1;
};
HACKC_FIELDS(GraphSoftcap, "softcap", x, cap)
// Joins weights along the first axis.
struct GraphConcat {
  std::vector<std::string> inputs;
};
HACKC_FIELDS(GraphConcat, "concat", inputs)

using GraphOpVariant =
    std::variant<GraphEmbedding, GraphLinear, GraphRmsNorm, GraphLayerNorm, GraphRotaryTable,
                 GraphRope, GraphSplitHeads, GraphMergeHeads, GraphAttention, GraphCacheAppend,
                 GraphTakePositions, GraphActivation, GraphMultiply, GraphAdd, GraphScale,
                 GraphSoftcap, GraphConcat>;

struct GraphOp {
  std::string out;
  ValueType type;
  GraphOpVariant op;
  SourceLine line = {};
};

template <typename T>
inline constexpr bool kIsOperand =
    std::is_same_v<T, std::string> || std::is_same_v<T, std::vector<std::string>>;

// Calls `visit(field, name)` for each operand of one kind of operation, absent ones ("") too.
template <typename T, typename Visit>
void ForEachOperand(const T& op, Visit&& visit) {
  ForEachField<T>([&](const auto& field) {
    const auto& value = op.*field.member;
    if constexpr (kIsOperand<std::decay_t<decltype(value)>>) {
      for (const std::string& name : std::vector<std::string>{value}) visit(field.name, name);
    }
  });
}

// Names of the values that an operation reads, absent ones ("") left out.
std::vector<std::string> Operands(const GraphOp& op);

using GraphSegment = Segment<GraphOp>;
using GraphModule = Module<GraphOp>;

}  // namespace hackc::ir
