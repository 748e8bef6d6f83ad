// SPDX-License-Identifier: MIT
// Makers of the formulas that a client evaluates. They fold constants and drop what changes
// nothing, so that a contract reads well.
//
//   Add(Constant(3), Constant(4)) == Constant(7);   Mul(x, Constant(1)) == x
//   FromExpr(CeilDiv(MakeSymbol("seq"), 128))       // (seq + 127) / 128
//
// Thread safety: pure functions.
#pragma once

#include <vector>

#include "compiler/ir/buffer.h"
#include "compiler/program/program.h"

namespace hackc::program {

DimExpr Constant(int64_t value);
DimExpr Add(DimExpr a, DimExpr b);  // x * 4 + y + x * 2 becomes x * 6 + y
DimExpr Mul(const DimExpr& a, const DimExpr& b);
// The smaller and the larger of two values that are never negative. Multiples of the same formula
// are decided here, also where one of them stands in such a choice: Max(Max(x, y), x) is Max(x, y).
DimExpr Min(DimExpr a, DimExpr b);
DimExpr Max(DimExpr a, DimExpr b);
DimExpr RoundUp(DimExpr a, int64_t multiple);
DimExpr Product(const std::vector<ir::Expr>& extents);

// An integer expression over symbols and literals; HACKC_CHECKs that it holds nothing else.
DimExpr FromExpr(const ir::Expr& e);

// Value with every symbol at its upper bound.
int64_t AtMaximum(const DimExpr& e, const std::vector<ir::SymbolDecl>& symbols);

}  // namespace hackc::program
