// SPDX-License-Identifier: MIT
// Questions about single expression nodes that verifiers, rewrites and interpreters share.
//
//   IsComparison(BinaryOp::kLt), FloorDivide(-7, 2) == -4
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>

#include "compiler/ir/expr.h"

namespace hackc::ir {

bool IsComparison(BinaryOp op);

// Integers of one dtype, or a literal that takes the other's: what IR before its verification may lack.
inline bool CanSubtract(const Expr& a, const Expr& b) {
  return IsInteger(a->dtype) && IsInteger(b->dtype) &&
         (a->dtype == b->dtype || AsInt(a) || AsInt(b));
}

int64_t FloorDivide(int64_t a, int64_t b);  // b is neither 0 nor -1

}  // namespace hackc::ir
