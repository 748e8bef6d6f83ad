// SPDX-License-Identifier: MIT
// Expressions from text: the inverse of Print(Expr). Text that does not type is refused with line
// and column.
//
//   ExprScope scope;
//   scope.variable = [](std::string_view name) { return std::optional(DType::kI32); };
//   scope.buffer = [](std::string_view name) { return std::optional(DType::kBF16); };
//   TextLexer lexer("(f32(@x[%m, (%k + 1)]) * 0.5)");
//   HACKC_ASSIGN_OR_RETURN(Expr e, ParseExpr(lexer, scope));
//
// Nesting is capped at kMaxExprDepth. The makers' constant folding applies, so printed text is a
// fixed point. Thread safety: pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/ir/expr.h"
#include "compiler/ir/text_lexer.h"

namespace hackc::ir {

// What names mean where an expression stands; nullopt or false: not known here. An empty callback
// knows nothing, except `symbol`: when it is empty, every plain word is a symbol.
struct ExprScope {
  std::function<std::optional<DType>(std::string_view name)> variable;  // %name
  std::function<std::optional<DType>(std::string_view name)> buffer;    // @name
  std::function<bool(std::string_view name)> symbol;                    // name
};

absl::StatusOr<Expr> ParseExpr(TextLexer& lexer, const ExprScope& scope);

// A whole text that is one expression.
absl::StatusOr<Expr> ParseExpr(std::string_view text, const ExprScope& scope);

// Expressions read `name` as a symbol; not so `inf`, `true` and `thread.x`.
bool CanBeSymbol(const std::string& name);

}  // namespace hackc::ir
