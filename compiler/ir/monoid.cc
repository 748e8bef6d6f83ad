// SPDX-License-Identifier: MIT
#include "compiler/ir/monoid.h"

#include <array>
#include <limits>

namespace hackc::ir {
namespace {
constexpr std::array<std::string_view, 6> kNames = {"sum",     "max",         "min",
                                                    "product", "softmax_sum", "log_sum_exp"};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
}  // namespace

std::string_view Name(Monoid monoid) { return kNames[static_cast<size_t>(monoid)]; }

std::optional<Monoid> MonoidFromName(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Monoid>(i);
  }
  return std::nullopt;
}

int OperandCount(Monoid monoid) { return monoid == Monoid::kSoftmaxSum ? 2 : 1; }

std::vector<double> Identity(Monoid monoid) {
  if (monoid == Monoid::kSoftmaxSum) return {-kInfinity, 0, 0};
  if (monoid == Monoid::kLogSumExp) return {-kInfinity, 0};
  constexpr double kOf[] = {0, -kInfinity, kInfinity, 1};  // sum, max, min, product
  return {kOf[static_cast<size_t>(monoid)]};
}

}  // namespace hackc::ir
