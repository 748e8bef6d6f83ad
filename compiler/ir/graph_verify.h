// SPDX-License-Identifier: MIT
// Verifies Graph IR: the module's rules (module_verify.h, M1 to M12) and those of its operations.
//
//   G1 operand       an operation has all operands that are not optional; concat has at least one
//   G2 float         values that operations compute on are floats; ids are i32 or i64
//   G3 attribute     epsilon, caps and softcaps are finite and not negative (cap positive), scales
//                    finite, window >= 0; dynamic_factor and dynamic_length both 0 or both positive
//   G4 embedding     table [rows, n], out = shape of ids + [n]
//   G5 linear        weight [n, k] ([k, n] when transposed), x [..., k], bias [n], out [..., n]
//   G6 norm          weight and bias [n], x and out [..., n]
//   G7 rotary_table  inverse_frequencies f32 [half], out f32 [batch, seq, half]; half >= 2 when
//                    dynamic; past_lengths as in G10
//   G8 rope          x and out [b, s, h, d], cosine and sine f32 [b, s, half], 2 * half <= d
//   G9 heads         split_heads: x [b, s, f], out [b, s, heads, head_dim], first + heads *
//                    head_dim <= f; merge_heads: x [b, s, h, d], out [b, s, h * d]
//   G10 attention    q and out [b, s, hq, d], k and v [b, t, hk, d], hq a multiple of hk, t = s, or
//                    past + s where the module has the symbol past; past_lengths i32 [b] there,
//                    absent elsewhere
//   G11 cache        cache is a state [b, capacity, h, d], or [pages, size, h, d] with page_table
//                    i32 [b, n] and capacity n * size; x [b, s, h, d], out [b, past + s, h, d],
//                    past + s <= capacity; past_lengths as in G10; a state is appended to once;
//                    nothing else reads a state
//   G12 pointwise    activation, scale, softcap: out like x;
//                    add, multiply: a, b and out alike
//   G13 concat       inputs [n_i, ...] with equal tails, out [sum of n_i, ...]
//   G14 view         operations that only move elements keep the dtype
//   G15 positions    take_positions: x [b, s, f], positions i32 [b] or absent, out [b, 1, f]
//
// Thread safety: a pure function.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/ir/rule.h"

namespace hackc::ir {

inline constexpr auto kGraphRules =
    Rules('G', {"operand", "float", "attribute", "embedding", "linear", "norm", "rotary_table",
                "rope", "heads", "attention", "cache", "pointwise", "concat", "view", "positions"});

// All errors, as ErrorText of rule.h writes them; empty when the module is good.
std::vector<std::string> VerifyGraph(const GraphModule& module);

}  // namespace hackc::ir
