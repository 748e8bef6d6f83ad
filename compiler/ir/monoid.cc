// SPDX-License-Identifier: MIT
#include "compiler/ir/monoid.h"

#include <limits>

namespace hackc::ir {

int OperandCount(Monoid monoid) { return monoid == Monoid::kSoftmaxSum ? 2 : 1; }

std::vector<double> Identity(Monoid monoid) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (monoid == Monoid::kSoftmaxSum) return {-kInfinity, 0, 0};
  if (monoid == Monoid::kLogSumExp) return {-kInfinity, 0};
  constexpr double kOf[] = {0, -kInfinity, kInfinity, 1};  // sum, max, min, product
  return {kOf[static_cast<size_t>(monoid)]};
}

}  // namespace hackc::ir
