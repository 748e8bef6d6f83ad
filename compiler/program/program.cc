// SPDX-License-Identifier: MIT
#include "compiler/program/program.h"

#include <algorithm>

namespace hackc::program {
namespace {

int64_t FloorDivide(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

}  // namespace

int64_t Evaluate(const DimExpr& expr, const std::map<std::string, int64_t>& symbols) {
  using Op = DimExpr::Op;
  if (expr.op == Op::kConstant) return expr.value;
  if (expr.op == Op::kSymbol) {
    auto it = symbols.find(expr.symbol);
    return it == symbols.end() ? 0 : it->second;
  }
  if (expr.args.size() != 2) return 0;
  int64_t a = Evaluate(expr.args[0], symbols), b = Evaluate(expr.args[1], symbols);
  bool divides = expr.op == Op::kFloorDiv || expr.op == Op::kCeilDiv || expr.op == Op::kMod;
  if (divides && b == 0) return 0;
  switch (expr.op) {
    case Op::kAdd: return a + b;
    case Op::kMul: return a * b;
    case Op::kFloorDiv: return FloorDivide(a, b);
    case Op::kCeilDiv: return -FloorDivide(-a, b);
    case Op::kMod: return a - b * FloorDivide(a, b);
    case Op::kMin: return std::min(a, b);
    case Op::kMax: return std::max(a, b);
    case Op::kConstant:
    case Op::kSymbol: break;
  }
  return 0;
}

}  // namespace hackc::program
