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
// The rules, where 0 <= r < g and all but x, y and r are constants where a number divides:
//   select(c, a, a) = a                 c && c = c, c || c = c, c == c, c != c
//   terms of one atom together, products multiplied out
//   k * n * (x // n) + k * (x % n) = k * x
//   a // b = 0 and a % b = a            where 0 <= a < b
//   (n * a + b) // n = a + b // n       (n * a + b) % n = b % n, coefficients too
//   a // n, and a % n = a - k * n       where all of a is in one multiple of n
//   (g * y + r) // (g * d) = y // d     (g * y + r) % (g * d) = g * (y % d) + r
//   (x // p + k) // d = (x + k * p) // (p * d)
//   (x % (d * n)) % d = x % d
//   min, max, <, <=, == and !=          where what decides is known
// tests/ir/simplify_rules_test.cc has a row for each.
//
// Thread safety: pure function.
#pragma once

#include "compiler/ir/expr.h"
#include "compiler/ir/ranges.h"

namespace hackc::ir {

Expr Simplify(const Expr& e, const RangeMap& ranges);

}  // namespace hackc::ir
