// SPDX-License-Identifier: MIT
// Sums and products of sizes that a text may name, before anything bounds them: they stop at the
// end of 64 bits, where no limit holds them, instead of wrapping into it.
//
//   SaturatedProduct(int64_t{1} << 40, int64_t{1} << 40) == INT64_MAX
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>

namespace hackc {

inline int64_t SaturatedSum(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? (a < 0 ? INT64_MIN : INT64_MAX) : sum;
}

inline int64_t SaturatedProduct(int64_t a, int64_t b) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

}  // namespace hackc
