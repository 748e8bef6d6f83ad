// SPDX-License-Identifier: MIT
#include "client/runtime/dim_expr.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"

namespace hackc::client {
namespace {

// Real formulas are a few levels deep; protobuf's own parser stops at 100.
constexpr int kMaxDepth = 128;

absl::Status Overflow(const v1::DimExpr& expr) {
  return absl::OutOfRangeError(absl::StrCat("formula overflows 64 bits: ", FormulaText(expr)));
}

int64_t FloorDivide(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

absl::StatusOr<int64_t> Apply(const v1::DimExpr& expr, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (expr.op()) {
    case v1::DimExpr::ADD:
      if (__builtin_add_overflow(a, b, &result)) return Overflow(expr);
      return result;
    case v1::DimExpr::MUL:
      if (__builtin_mul_overflow(a, b, &result)) return Overflow(expr);
      return result;
    case v1::DimExpr::FLOOR_DIV:
    case v1::DimExpr::CEIL_DIV:
    case v1::DimExpr::MOD: {
      if (b == 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("formula divides by zero: ", FormulaText(expr)));
      }
      if (a == std::numeric_limits<int64_t>::min() && b == -1) return Overflow(expr);
      int64_t floor = FloorDivide(a, b);
      if (expr.op() == v1::DimExpr::FLOOR_DIV) return floor;
      // |floor * b| <= |a| + |b|; the remainder itself always fits.
      int64_t remainder = a % b;
      if (remainder != 0 && (remainder < 0) != (b < 0)) remainder += b;
      if (expr.op() == v1::DimExpr::MOD) return remainder;
      return remainder == 0 ? floor : floor + 1;
    }
    case v1::DimExpr::MIN: return std::min(a, b);
    case v1::DimExpr::MAX: return std::max(a, b);
    default:
      return absl::InvalidArgumentError(absl::StrCat("formula has unknown operator ", expr.op()));
  }
}

absl::StatusOr<int64_t> EvaluateAt(const v1::DimExpr& expr, const SymbolValues& symbols,
                                   int depth) {
  if (depth > kMaxDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat("formula is nested deeper than ", kMaxDepth, " levels"));
  }
  if (expr.op() == v1::DimExpr::CONSTANT) return expr.value();
  if (expr.op() == v1::DimExpr::SYMBOL) {
    auto found = symbols.find(expr.symbol());
    if (found == symbols.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("formula uses the symbol '", expr.symbol(), "', which has no value here"));
    }
    return found->second;
  }
  if (expr.args_size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat("formula operator ",
                                                   v1::DimExpr::Op_Name(expr.op()), " has ",
                                                   expr.args_size(), " operands, expected 2"));
  }
  HACKC_ASSIGN_OR_RETURN(int64_t a, EvaluateAt(expr.args(0), symbols, depth + 1));
  HACKC_ASSIGN_OR_RETURN(int64_t b, EvaluateAt(expr.args(1), symbols, depth + 1));
  return Apply(expr, a, b);
}

// x of floor((x + n - 1) / n), which people know as ceil(x / n); null when the formula is not that.
const v1::DimExpr* CeilNumerator(const v1::DimExpr& expr) {
  if (expr.op() != v1::DimExpr::FLOOR_DIV) return nullptr;
  const v1::DimExpr& sum = expr.args(0);
  const v1::DimExpr& divisor = expr.args(1);
  bool ceil = sum.op() == v1::DimExpr::ADD && sum.args_size() == 2 &&
              sum.args(1).op() == v1::DimExpr::CONSTANT && divisor.op() == v1::DimExpr::CONSTANT &&
              divisor.value() > 1 && sum.args(1).value() == divisor.value() - 1;
  return ceil ? &sum.args(0) : nullptr;
}

// Precedences: 1 sum, 2 product, 3 atom.
std::string Text(const v1::DimExpr& expr, int context, int depth) {
  if (depth > kMaxDepth) return "...";
  if (expr.op() == v1::DimExpr::CONSTANT) return absl::StrCat(expr.value());
  if (expr.op() == v1::DimExpr::SYMBOL) return expr.symbol();
  if (expr.args_size() != 2) return absl::StrCat(v1::DimExpr::Op_Name(expr.op()), "(?)");
  auto infix = [&](const char* op, int own) {
    std::string text = absl::StrCat(Text(expr.args(0), own, depth + 1), op,
                                    Text(expr.args(1), own + 1, depth + 1));
    return own < context ? absl::StrCat("(", text, ")") : text;
  };
  auto call = [&](const char* name, const char* separator, int inner) {
    return absl::StrCat(name, "(", Text(expr.args(0), inner, depth + 1), separator,
                        Text(expr.args(1), inner == 0 ? 0 : inner + 1, depth + 1), ")");
  };
  if (const v1::DimExpr* numerator = CeilNumerator(expr)) {
    return absl::StrCat("ceil(", Text(*numerator, 2, depth + 1), " / ", expr.args(1).value(), ")");
  }
  switch (expr.op()) {
    case v1::DimExpr::ADD: return infix(" + ", 1);
    case v1::DimExpr::MUL: return infix(" * ", 2);
    case v1::DimExpr::MOD: return infix(" % ", 2);
    case v1::DimExpr::FLOOR_DIV: return call("floor", " / ", 2);
    case v1::DimExpr::CEIL_DIV: return call("ceil", " / ", 2);
    case v1::DimExpr::MIN: return call("min", ", ", 0);
    case v1::DimExpr::MAX: return call("max", ", ", 0);
    default: return "?";
  }
}

bool SymbolicAt(const v1::DimExpr& expr, int depth) {
  if (expr.op() == v1::DimExpr::SYMBOL || depth > kMaxDepth) return true;
  return std::any_of(expr.args().begin(), expr.args().end(),
                     [&](const v1::DimExpr& arg) { return SymbolicAt(arg, depth + 1); });
}

}  // namespace

absl::StatusOr<int64_t> Evaluate(const v1::DimExpr& expr, const SymbolValues& symbols) {
  return EvaluateAt(expr, symbols, 0);
}

std::string FormulaText(const v1::DimExpr& expr) { return Text(expr, 0, 0); }

bool IsSymbolic(const v1::DimExpr& expr) { return SymbolicAt(expr, 0); }

}  // namespace hackc::client
