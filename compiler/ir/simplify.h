// SPDX-License-Identifier: MIT
// Index arithmetic made small with what is known of ranges. Integers and conditions only; floating
// point is left exactly as it is, except below index arithmetic (loads inside it are visited).
//
//   with 0 <= i < 64 and 0 <= m < 16:
//   ((m * 64) + i) // 64          ->  m
//   ((m * 64) + i) % 64           ->  i
//   (x // 4) * 4 + x % 4          ->  x
//   min(i, 100)                   ->  i
//   select((i < 64), a, b)        ->  a
//
// Rules hold for floor division and for a modulus with the divisor's sign, over all integers.
// Results are stable: Simplify(Simplify(e)) is Simplify(e), and an expression that is already small
// keeps its handle.
//
// Thread safety: pure function.
#pragma once

#include "compiler/ir/expr.h"
#include "compiler/ir/ranges.h"

namespace hackc::ir {

Expr Simplify(const Expr& e, const RangeMap& ranges);

}  // namespace hackc::ir
