// SPDX-License-Identifier: MIT
// Whether a kernel wrote what its reference wrote, every element, within what its types and sums
// allow.
//
//   const double allowed = AllowedError(v1::DTYPE_BFLOAT16, /*longest_reduction=*/4096);
//   std::string wrong = Difference(v1::DTYPE_BFLOAT16, actual, expected, /*row=*/128, allowed);
//
// The error is relative to the largest element of the row (the last axis). What the reference left
// as poison must be poison still. Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hackc/v1/model.pb.h"

namespace hackc::server {

// Four units of the coarsest type that values are rounded to, one for each rounding of a fused
// chain; and for float32 sums of n terms 8 sqrt(n) + n / 4 units: a random walk, and what matrix
// units cut off instead of rounding, one unit in each step of 8 or 16 terms.
double AllowedError(v1::DType coarsest, int64_t longest_reduction);

// Of the first element that is wrong: "[17] is 0.5, the reference is 0.25, allowed is 0.001".
// Empty: all are right.
std::string Difference(v1::DType dtype, std::string_view actual, std::string_view expected,
                       int64_t row, double allowed);

}  // namespace hackc::server
