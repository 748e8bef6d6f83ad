// SPDX-License-Identifier: MIT
// Formulas in one line, for tests.
//
//   *kernel.add_grid() = Op(v1::DimExpr::CEIL_DIV, Sym("seq"), Const(16));
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "hackc/v1/program.pb.h"

namespace hackc::client {

inline v1::DimExpr Const(int64_t value) {
  v1::DimExpr expr;
  expr.set_value(value);
  return expr;
}

inline v1::DimExpr Sym(const std::string& name) {
  v1::DimExpr expr;
  expr.set_op(v1::DimExpr::SYMBOL);
  expr.set_symbol(name);
  return expr;
}

inline v1::DimExpr Op(v1::DimExpr::Op op, const v1::DimExpr& a, const v1::DimExpr& b) {
  v1::DimExpr expr;
  expr.set_op(op);
  *expr.add_args() = a;
  *expr.add_args() = b;
  return expr;
}

}  // namespace hackc::client
