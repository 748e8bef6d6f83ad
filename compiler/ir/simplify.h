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
// Each rule has an id; tests ask which were used, so that none is without a check over all small
// integers.
//
// Thread safety: pure function.
#pragma once

#include <cstdint>
#include <set>

#include "compiler/ir/expr.h"
#include "compiler/ir/ranges.h"

namespace hackc::ir {

enum class SimplifyRule : uint8_t {
  kSelectSame,      // select(c, a, a) = a
  kSum,             // terms of one atom together, products multiplied out
  kRecombine,       // c * (x // n) + k * (x % n) = k * x, where c = k * n
  kDivideSmall,     // a // b = 0, where 0 <= a < b
  kDivideSplit,     // (n * a + b) // n = a + b // n
  kDivideConstant,  // a // n, where all of a is in one multiple of n
  kDivideTile,      // (g * y + r) // (g * d) = y // d, where 0 <= r < g
  kDivideNested,    // (x // p + k) // d = (x + k * p) // (p * d)
  kModuloSmall,     // a % b = a, where 0 <= a < b
  kModuloSplit,     // (n * a + b) % n = b % n, coefficients too
  kModuloNested,    // (x % (d * n)) % d = x % d
  kModuloOneTurn,   // a % n = a - k * n, where all of a is in one multiple of n
  kModuloTile,      // (g * y + r) % (g * d) = g * (y % d) + r, where 0 <= r < g
  kMin,             // the smaller is known
  kMax,             // the larger is known
  kLess,            // a < b is known
  kLessEqual,       // a <= b is known
  kEqual,           // a == b or a != b is known
  kSameCondition,   // c && c = c, c || c = c, c == c
  kCount,
};

// `used`: when given, gets the rules that were.
Expr Simplify(const Expr& e, const RangeMap& ranges, std::set<SimplifyRule>* used = nullptr);

}  // namespace hackc::ir
