// SPDX-License-Identifier: MIT
// Where each shared Alloc of a kernel lies in the block's shared memory. The verifier, code
// generation and the launch contract all ask here, so that they cannot disagree.
//
//   alloc @tile: shared bf16[64, 32] padding 8  ->  offset 0, rows of 40 elements, 5120 bytes
//   SharedLayout layout = LayoutShared(kernel.fn.body);
//   layout.Find("tile")->offset;  layout.total_bytes;
//
// Every Alloc has its own bytes: allocations of bodies that never live together do not share.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "compiler/ir/stmt.h"

namespace hackc::ir {

struct SharedSlot {
  const Alloc* alloc = nullptr;  // owned by the body given to LayoutShared
  int64_t offset = 0;            // bytes, a multiple of alloc->alignment
  int64_t bytes = 0;
};

struct SharedLayout {
  std::vector<SharedSlot> slots;  // in order of appearance
  int64_t total_bytes = 0;
  int64_t alignment = 16;  // that the base must have: the largest of the slots

  const SharedSlot* Find(std::string_view name) const;  // null when there is none
};

SharedLayout LayoutShared(const Block& body);

// Elements from one index to the next, for each dimension: row-major, each innermost row longer by
// `padding`. Empty for a scalar.
std::vector<int64_t> Strides(const Alloc& alloc);
// Elements that the allocation takes, padding included. 1 for a scalar.
int64_t ElementCount(const Alloc& alloc);

}  // namespace hackc::ir
