// SPDX-License-Identifier: MIT
// Questions about the digits of one local axis (stmt.h).
//
//   CoordinateCount({thread(16, 1), register(8)}) == 128;   ThreadMask(...) == 15
//
// Thread safety: pure functions.
#pragma once

#include <algorithm>
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

// Coordinates that each thread has of its own.
inline int64_t RegisterCount(const std::vector<Digit>& digits) {
  int64_t count = 1;
  for (const Digit& digit : digits) {
    if (digit.kind == Digit::Kind::kRegister) count = SaturatedProduct(count, digit.extent);
  }
  return count;
}

// Coordinates of one tile of an axis.
inline int64_t TileOf(const AxisSchedule& axis) {
  return SaturatedProduct(axis.steps, CoordinateCount(axis.digits));
}

// Bits of the thread index that the digits use.
inline int ThreadMask(const std::vector<Digit>& digits) {
  int mask = 0;
  for (const Digit& digit : digits) {
    if (digit.kind == Digit::Kind::kThread) mask |= (digit.extent - 1) * digit.stride;
  }
  return mask;
}

// Matrix instructions sum over this axis: its last digit is one, what stands before says which
// warps take which part.
inline bool IsMatrix(const std::vector<Digit>& digits) {
  return !digits.empty() && digits.back().kind == Digit::Kind::kMatrix;
}

// How threads fill an array in memory: up to `vector` elements at a time along its last dimension,
// threads over what is left, registers for the rest. Digits of each dimension.
inline std::vector<std::vector<Digit>> FillLayout(const std::vector<int64_t>& extents,
                                                  int64_t vector, int64_t threads) {
  std::vector<std::vector<Digit>> layout(extents.size());
  while (extents.back() % vector != 0) vector /= 2;
  int64_t stride = 1;
  for (size_t i = extents.size(); i-- > 0; vector = 1) {
    const int64_t rest = extents[i] / vector;
    const int64_t span = std::min(rest & -rest, threads / stride);  // powers of two
    const auto add = [&](Digit::Kind kind, int64_t extent, int64_t at) {
      if (extent > 1) layout[i].push_back({kind, static_cast<int>(extent), static_cast<int>(at)});
    };
    add(Digit::Kind::kRegister, rest / span, 1);
    add(Digit::Kind::kThread, span, stride);
    add(Digit::Kind::kRegister, vector, 1);
    stride *= span;
  }
  return layout;
}

// How the rows and the columns of a matrix fragment end: of 16 rows and 8 columns a thread holds 2
// x 2.
inline constexpr Digit kRowEnd[] = {{Digit::Kind::kRegister, 2, 1}, {Digit::Kind::kThread, 8, 4}};
inline constexpr Digit kColumnEnd[] = {{Digit::Kind::kThread, 4, 1},
                                       {Digit::Kind::kRegister, 2, 1}};

inline bool EndsWith(const std::vector<Digit>& digits, const Digit (&end)[2]) {
  return digits.size() >= 2 && std::equal(end, end + 2, digits.end() - 2);
}

// Columns of a result that is the first operand of `steps` instructions, 16 of its columns each.
inline std::vector<Digit> FragmentColumns(int steps) {
  return {{Digit::Kind::kRegister, 2 * steps, 1}, kColumnEnd[0], kColumnEnd[1]};
}

}  // namespace hackc::ir
