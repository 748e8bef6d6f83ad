// SPDX-License-Identifier: MIT
// Where the elements of a wgmma operand lie in shared memory, and how the unit for bulk copies and
// wgmma permute 16-byte chunks of it (swizzle).
//
//   Swizzle(0x90, 128) == 0x80      // address bits 4..6 xor bits 7..9; 64: bits 4, 5; 32: bit 4
//   OperandByte({Major::kK, 0, 1024, 128}, 2, 9, 4) == 1024 + 128 + 8
//
// Rows are those of a (m) or the columns of b (n). With `span` bytes of swizzle (16: none), T
// elements of 16 bytes and W of a span:
//   K-major   8 rows of one span each lie together; the next 8 rows are `stride` further. Without a
//             swizzle a row's second 16 bytes are `leading` further.
//   MN-major  8 k of one span (W rows) each lie together. With a swizzle the next W rows are
//             `leading` and the next 8 k `stride` further, without one it is the other way round.
// Thread safety: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "compiler/ir/stmt.h"

namespace hackc::ir {

inline int64_t Swizzle(int64_t byte_address, int swizzle) {
  return swizzle == 0 ? byte_address : byte_address ^ (byte_address >> 3 & (swizzle - 16));
}

struct OperandLayout {
  Major major = Major::kK;
  int64_t leading = 0, stride = 0;  // bytes
  int swizzle = 0;                  // bytes
};

// Bytes from the operand's first element to element (row, k), before the swizzle.
inline int64_t OperandByte(const OperandLayout& layout, int element_bytes, int row, int k) {
  const int span = std::max(layout.swizzle, 16);
  if (layout.major == Major::kK) {
    const int64_t at = int64_t{k} * element_bytes;
    return row % 8 * span + row / 8 * layout.stride +
           (layout.swizzle ? at : at / 16 * layout.leading + at % 16);
  }
  const int width = span / element_bytes;
  const bool swizzled = layout.swizzle != 0;
  return row % width * element_bytes + row / width * (swizzled ? layout.leading : layout.stride) +
         k % 8 * span + k / 8 * (swizzled ? layout.stride : layout.leading);
}

inline OperandLayout LayoutOfA(const Wgmma& n) {
  return {n.a_major, n.a_leading, n.a_stride, n.a_swizzle};
}
inline OperandLayout LayoutOfB(const Wgmma& n) {
  return {n.b_major, n.b_leading, n.b_stride, n.b_swizzle};
}
inline int DepthOf(const Wgmma& n) { return 32 / SizeOf(n.dtype); }  // k: 16, or 8 for tf32

}  // namespace hackc::ir
