// SPDX-License-Identifier: MIT
// The fields of every Graph operation, each named once; see fields.h. Strings and lists of strings
// are operands, everything else is an attribute.
//
//   for (const std::string& operand : Operands(op)) Use(operand);
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "compiler/ir/fields.h"
#include "compiler/ir/graph.h"

namespace hackc::ir {

HACKC_ENUM_NAMES(ActivationKind, "silu", "gelu", "gelu_tanh", "relu", "tanh", "sigmoid")

HACKC_FIELDS(GraphEmbedding, "embedding", ids, table)
HACKC_FIELDS(GraphLinear, "linear", x, weight, bias, transposed)
HACKC_FIELDS(GraphRmsNorm, "rms_norm", x, weight, epsilon, weight_offset)
HACKC_FIELDS(GraphLayerNorm, "layer_norm", x, weight, bias, epsilon)
HACKC_FIELDS(GraphRotaryTable, "rotary_table", inverse_frequencies, past_lengths, sine, scale,
             dynamic_factor, dynamic_length)
HACKC_FIELDS(GraphRope, "rope", x, cosine, sine, interleaved)
HACKC_FIELDS(GraphSplitHeads, "split_heads", x, first, heads, head_dim)
HACKC_FIELDS(GraphMergeHeads, "merge_heads", x)
HACKC_FIELDS(GraphAttention, "attention", q, k, v, past_lengths, scale, window, softcap)
HACKC_FIELDS(GraphCacheAppend, "cache_append", cache, x, past_lengths, page_table)
HACKC_FIELDS(GraphTakePositions, "take_positions", x, positions)
HACKC_FIELDS(GraphActivation, "activation", x, kind)
HACKC_FIELDS(GraphMultiply, "multiply", a, b)
HACKC_FIELDS(GraphAdd, "add", a, b)
HACKC_FIELDS(GraphScale, "scale", x, factor)
HACKC_FIELDS(GraphSoftcap, "softcap", x, cap)
HACKC_FIELDS(GraphConcat, "concat", inputs)

template <typename T>
inline constexpr bool kIsOperand =
    std::is_same_v<T, std::string> || std::is_same_v<T, std::vector<std::string>>;

// Calls `visit(field, name)` for each operand of `op`, absent ones ("") too.
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
// "linear"
std::string_view OpName(const GraphOp& op);

}  // namespace hackc::ir
