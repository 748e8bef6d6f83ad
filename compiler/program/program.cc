// SPDX-License-Identifier: MIT
#include "compiler/program/program.h"

#include <algorithm>

#include "compiler/ir/expr.h"

namespace hackc::program {

using ir::FloorDivide;

int64_t Evaluate(const DimExpr& expr, const std::map<std::string, int64_t>& symbols) {
  using Op = DimExpr::Op;
  if (expr.op == Op::kConstant) return expr.value;
  if (expr.op == Op::kSymbol) return FindOr(symbols, expr.symbol);
  if (expr.args.size() != 2) return 0;
  int64_t a = Evaluate(expr.args[0], symbols), b = Evaluate(expr.args[1], symbols);
  bool divides = expr.op == Op::kFloorDiv || expr.op == Op::kCeilDiv || expr.op == Op::kMod;
  if (divides && b == 0) return 0;
  switch (expr.op) {
    case Op::kAdd: return a + b;
    case Op::kMul: return a * b;
    case Op::kFloorDiv: return FloorDivide(a, b);
    case Op::kCeilDiv: return -FloorDivide(-a, b);
    case Op::kMod: return ir::FloorMod(a, b);
    case Op::kMin: return std::min(a, b);
    case Op::kMax: return std::max(a, b);
    case Op::kConstant:
    case Op::kSymbol: break;
  }
  return 0;
}

}  // namespace hackc::program
