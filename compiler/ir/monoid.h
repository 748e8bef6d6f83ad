// SPDX-License-Identifier: MIT
// The algebra of reductions. A monoid has a state of one or more float32 components, an identity,
// an associative combine, and a way to lift operands into a state and to read the result out.
//
//   kSum, kMax, kMin, kProduct: state (a); operands (value); result a
//   kSoftmaxSum: state (maximum, sum, accumulator); operands (score, value); result
//     accumulator / sum.
//     combine((m1,l1,a1),(m2,l2,a2)): m = max(m1,m2); l = l1*exp(m1-m) + l2*exp(m2-m); a likewise.
//     It makes streaming attention, split key/value and the parallel softmax one reduction.
//     A state that saw no score above -inf reads as 0.
//   kLogSumExp: state (maximum, sum); operand (score); result maximum + log(sum), -inf where
//     nothing was seen. It is the score that a softmax sum over part of an axis has in a softmax
//     sum over the parts.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "compiler/ir/fields.h"

namespace hackc::ir {

enum class Monoid : uint8_t { kSum, kMax, kMin, kProduct, kSoftmaxSum, kLogSumExp };
HACKC_ENUM_NAMES(Monoid, "sum", "max", "min", "product", "softmax_sum", "log_sum_exp")

constexpr int OperandCount(Monoid monoid) { return monoid == Monoid::kSoftmaxSum ? 2 : 1; }

// One value for each state component.
inline std::vector<double> Identity(Monoid monoid) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (monoid == Monoid::kSoftmaxSum) return {-kInfinity, 0, 0};
  if (monoid == Monoid::kLogSumExp) return {-kInfinity, 0};
  constexpr double kOf[] = {0, -kInfinity, kInfinity, 1};  // sum, max, min, product
  return {kOf[static_cast<size_t>(monoid)]};
}

}  // namespace hackc::ir
