// SPDX-License-Identifier: MIT
// Text of Graph IR, both ways; see module_text.h for the frame around the operations. Operands
// stand in parentheses (`none` where an optional one is absent), attributes in braces, all of them,
// in a fixed order. Parse(Print(x)) equals x, and Print(Parse(t)) == t for printed t.
//
//   %y: bf16[batch, seq, 64] = linear(%x, %w, none) {transposed = false}
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"

namespace hackc::ir {

std::string Print(const GraphModule& module);

// INVALID_ARGUMENT with line, column and what was expected.
absl::StatusOr<GraphModule> ParseGraph(std::string_view text);

}  // namespace hackc::ir
