// SPDX-License-Identifier: MIT
#include "compiler/program/dim_expr.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "compiler/support/internal_error.h"

namespace hackc::program {
namespace {

using Op = DimExpr::Op;

bool IsConstant(const DimExpr& e, int64_t value) {
  return e.op == Op::kConstant && e.value == value;
}

DimExpr Make(Op op, DimExpr a, DimExpr b) {
  DimExpr result{.op = op, .args = {std::move(a), std::move(b)}};
  if (result.args[0].op == Op::kConstant && result.args[1].op == Op::kConstant) {
    return Constant(Evaluate(result, {}));
  }
  return result;
}

// `e` as factor * rest, with rest absent for a constant.
std::pair<int64_t, std::optional<DimExpr>> Split(const DimExpr& e) {
  if (e.op == Op::kConstant) return {e.value, std::nullopt};
  if (e.op == Op::kMul && e.args[1].op == Op::kConstant) return {e.args[1].value, e.args[0]};
  return {1, e};
}

// Whether the smaller (or larger) of `e` and `other`, neither negative, is always `e`: `other` is
// another multiple of the same, or covered by one of those that `e` was chosen from.
bool Covers(Op op, const DimExpr& e, const DimExpr& other) {
  if (IsConstant(op == Op::kMin ? e : other, 0)) return true;
  const auto [factor, rest] = Split(e);
  const auto [other_factor, other_rest] = Split(other);
  if (rest == other_rest && (op == Op::kMin ? factor <= other_factor : factor >= other_factor))
    return true;
  return e.op == op &&
         absl::c_any_of(e.args, [&](const DimExpr& arg) { return Covers(op, arg, other); });
}

// Adds `e` to the multiple of the same that stands in `sum`; false where there is none.
bool AddToMultiple(DimExpr& sum, const DimExpr& e) {
  const auto [sum_factor, sum_rest] = Split(sum);
  const auto [factor, rest] = Split(e);
  if (sum_rest == rest) {
    const DimExpr both = Constant(sum_factor + factor);
    sum = rest ? Mul(*rest, both) : both;
    return true;
  }
  if (sum.op != Op::kAdd) return false;
  if (!AddToMultiple(sum.args[0], e) && !AddToMultiple(sum.args[1], e)) return false;
  sum = Add(DimExpr(sum.args[0]), DimExpr(sum.args[1]));  // one of them may be 0 now
  return true;
}

DimExpr Choose(Op op, DimExpr a, DimExpr b) {
  if (Covers(op, a, b)) return a;
  if (Covers(op, b, a)) return b;
  return Make(op, std::move(a), std::move(b));
}

}  // namespace

int64_t Evaluate(const DimExpr& expr, const std::map<std::string, int64_t>& symbols) {
  if (expr.op == Op::kConstant) return expr.value;
  if (expr.op == Op::kSymbol) return FindOr(symbols, expr.symbol);
  if (expr.args.size() != 2) return 0;
  int64_t a = Evaluate(expr.args[0], symbols), b = Evaluate(expr.args[1], symbols);
  bool divides = expr.op == Op::kFloorDiv || expr.op == Op::kCeilDiv || expr.op == Op::kMod;
  if (divides && b == 0) return 0;
  switch (expr.op) {
    case Op::kAdd: return a + b;
    case Op::kMul: return a * b;
    case Op::kFloorDiv: return ir::FloorDivide(a, b);
    case Op::kCeilDiv: return -ir::FloorDivide(-a, b);
    case Op::kMod: return ir::FloorMod(a, b);
    case Op::kMin: return std::min(a, b);
    case Op::kMax: return std::max(a, b);
    case Op::kConstant:
    case Op::kSymbol: break;
  }
  return 0;
}

DimExpr Constant(int64_t value) { return {.value = value}; }

DimExpr Add(DimExpr a, DimExpr b) {
  if (IsConstant(a, 0)) return b;
  if (IsConstant(b, 0) || AddToMultiple(a, b)) return a;
  return Make(Op::kAdd, std::move(a), std::move(b));
}

// A constant factor comes last, alone, so that Min and Max can compare multiples.
DimExpr Mul(const DimExpr& a, const DimExpr& b) {
  auto [a_factor, a_rest] = Split(a);
  auto [b_factor, b_rest] = Split(b);
  DimExpr factor = Make(Op::kMul, Constant(a_factor), Constant(b_factor));
  if (IsConstant(factor, 0) || (!a_rest && !b_rest)) return factor;
  DimExpr rest = a_rest && b_rest ? Make(Op::kMul, *a_rest, *b_rest) : a_rest ? *a_rest : *b_rest;
  return IsConstant(factor, 1) ? rest : Make(Op::kMul, std::move(rest), std::move(factor));
}

DimExpr Min(DimExpr a, DimExpr b) { return Choose(Op::kMin, std::move(a), std::move(b)); }
DimExpr Max(DimExpr a, DimExpr b) { return Choose(Op::kMax, std::move(a), std::move(b)); }

DimExpr RoundUp(DimExpr a, int64_t multiple) {
  if (Split(a).first % multiple == 0) return a;
  return Mul(Make(Op::kCeilDiv, std::move(a), Constant(multiple)), Constant(multiple));
}

DimExpr Product(const std::vector<ir::Expr>& extents) {
  DimExpr product = Constant(1);
  for (const ir::Expr& extent : extents) product = Mul(product, FromExpr(extent));
  return product;
}

DimExpr FromExpr(const ir::Expr& e) {
  if (auto value = ir::AsInt(e)) return Constant(*value);
  if (const auto* symbol = ir::As<ir::Symbol>(e)) {
    return {.op = Op::kSymbol, .symbol = symbol->name};
  }
  if (const auto* cast = ir::As<ir::Cast>(e)) return FromExpr(cast->a);
  const auto* binary = ir::As<ir::Binary>(e);
  HACKC_CHECK(binary != nullptr) << "no formula over symbols: " << ir::Print(e);
  DimExpr a = FromExpr(binary->a), b = FromExpr(binary->b);
  switch (binary->op) {
    case ir::BinaryOp::kAdd: return Add(std::move(a), std::move(b));
    case ir::BinaryOp::kSub: return Add(std::move(a), Mul(b, Constant(-1)));
    case ir::BinaryOp::kMul: return Mul(a, b);
    case ir::BinaryOp::kFloorDiv:
      return IsConstant(b, 1) ? a : Make(Op::kFloorDiv, std::move(a), std::move(b));
    case ir::BinaryOp::kMod: return Make(Op::kMod, std::move(a), std::move(b));
    case ir::BinaryOp::kMin: return Make(Op::kMin, std::move(a), std::move(b));
    case ir::BinaryOp::kMax: return Make(Op::kMax, std::move(a), std::move(b));
    default: break;
  }
  HACKC_FAIL() << "no formula over symbols: " << ir::Print(e);
  return {};
}

int64_t AtMaximum(const DimExpr& e, const std::vector<ir::SymbolDecl>& symbols) {
  std::map<std::string, int64_t> values;
  for (const ir::SymbolDecl& symbol : symbols) values[symbol.name] = symbol.max;
  return Evaluate(e, values);
}

}  // namespace hackc::program
