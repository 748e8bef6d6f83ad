// SPDX-License-Identifier: MIT
// Questions about the digits of one local axis (stmt.h).
//
//   CoordinateCount({thread(16, 1), register(8)}) == 128;   ThreadMask(...) == 15
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/support/saturate.h"

namespace hackc::ir {

// Coordinates that the digits count.
inline int64_t CoordinateCount(const std::vector<Digit>& digits) {
  int64_t extent = 1;
  for (const Digit& digit : digits) extent = SaturatedProduct(extent, digit.extent);
  return extent;
}

// Coordinates of one tile of an axis.
inline int64_t TileOf(const AxisSchedule& axis) {
  return axis.steps * CoordinateCount(axis.digits);
}

// Bits of the thread index that the digits use.
inline int ThreadMask(const std::vector<Digit>& digits) {
  int mask = 0;
  for (const Digit& digit : digits) {
    if (digit.kind == Digit::Kind::kThread) mask |= (digit.extent - 1) * digit.stride;
  }
  return mask;
}

// Matrix instructions sum over this axis: its last digit is one, what stands before says which warps take which
// part.
inline bool IsMatrix(const std::vector<Digit>& digits) {
  return !digits.empty() && digits.back().kind == Digit::Kind::kMatrix;
}

}  // namespace hackc::ir
