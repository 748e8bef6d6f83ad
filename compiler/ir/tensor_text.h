// SPDX-License-Identifier: MIT
// Text of Tensor IR, both ways; see module_text.h for the frame around the operations. Each
// operation has its label, its output's axes, and expressions over them.
//
//   %y.sum: f32[batch, seq, 64] = contract "q_linear" [b in batch, s in seq, c in 64] over [k in
//   32]
//       (f32(@x[%b, %s, %k]), f32(@w[%c, %k]))
//   %n.squares: f32[batch, seq] = reduce sum "norm" [b in batch, s in seq] over [k in 32]
//       ((f32(@x[%b, %s, %k]) * f32(@x[%b, %s, %k])))
//   %y: bf16[batch, seq, 64] = map "q_linear" [b in batch, s in seq, c in 64]
//                              bf16(@y.sum[%b, %s, %c])
//   %h: bf16[batch, seq, 4, 8] = view "heads" [...] @y[%b, %s, ((%h * 8) + %d)]
//   %e: bf16[batch, seq, 32] = gather "embedding" [...] @table[max(min(@ids[%b, %s], 95), 0), %c]
//   %k2: bf16[1, 64, 4, 8] = scatter "cache" [...] update [b in 1, s in seq, h in 4, d in 8]
//       @cache[%b, (past + %s), %h, %d] <- @k[%b, %s, %h, %d]
// (printed on one line each). Parse(Print(x)) equals x, and Print(Parse(t)) == t for printed t.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/ir/tensor.h"

namespace hackc::ir {

std::string Print(const TensorModule& module);

// INVALID_ARGUMENT with line, column and what was expected.
absl::StatusOr<TensorModule> ParseTensor(std::string_view text);

}  // namespace hackc::ir
