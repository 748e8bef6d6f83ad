// SPDX-License-Identifier: MIT
// Integer formulas of a Program (grids, shapes, offsets) evaluated on the client's side, where
// every number may come from a damaged or hostile file: overflow, division by zero, unknown symbols
// and wrong operand counts are errors and never undefined behaviour.
//
//   HACKC_ASSIGN_OR_RETURN(int64_t blocks, Evaluate(kernel.grid(0), {{"seq", 513}}));
//   FormulaText(kernel.grid(0));  // "ceil(seq / 64)"
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "hackc/v1/program.pb.h"

namespace hackc::client {

using SymbolValues = std::map<std::string, int64_t, std::less<>>;

// Division rounds towards minus infinity and the remainder has the divisor's sign, so that
// a == b * floor(a / b) + a mod b for every sign.
absl::StatusOr<int64_t> Evaluate(const v1::DimExpr& expr, const SymbolValues& symbols);

// The formula for people, with as few parentheses as C's precedences allow.
std::string FormulaText(const v1::DimExpr& expr);

// Whether any symbol occurs in the formula.
bool IsSymbolic(const v1::DimExpr& expr);

}  // namespace hackc::client
