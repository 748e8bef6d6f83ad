// SPDX-License-Identifier: MIT
// Integer expressions as sums: constant + coefficient * atom + ... An atom is anything that is not
// a sum or a multiple: a variable, a symbol, a quotient, a product of two atoms, a load.
//
//   Linear x = ToLinear((m * 64 + i) * 2 - i);   // 128*m + 1*i + 0
//   FromLinear(x, DType::kI32);                  // ((m * 128) + i)
//
// Sums are exact: where a coefficient would overflow 64 bits, the expression stays one atom.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/expr.h"

namespace hackc::ir {

struct Linear {
  struct Term {
    Expr atom;
    int64_t coefficient = 0;  // never 0
  };
  std::vector<Term> terms;  // distinct atoms, in order of first appearance
  int64_t constant = 0;
};

// What a nest of `op` joins, left to right: a, b and c of (a && (b && c)).
std::vector<Expr> Flatten(const Expr& e, BinaryOp op);

Linear ToLinear(const Expr& e);  // `e` is kI32 or kI64
Expr FromLinear(const Linear& linear, DType dtype);

// Absent when a coefficient overflows.
std::optional<Linear> Sum(const Linear& a, const Linear& b);
std::optional<Linear> Scaled(const Linear& a, int64_t factor);
// `sum` with `value` in the place of one of its atoms; absent likewise.
std::optional<Linear> Replaced(const Linear& sum, const Expr& atom, const Expr& value);

// Equal as sums: past + seq is seq + past. Both are integers of one dtype.
bool SameSum(const Expr& a, const Expr& b);

}  // namespace hackc::ir
