// SPDX-License-Identifier: MIT
// What a request says of a model besides its config and dtype.
//
//   Shapes shapes{.batch = {1, 8}, .past = {0, 4096}};
//
// Thread safety: plain values.
#pragma once

#include <cstdint>

namespace hackc::frontend {

// Inclusive bounds of a runtime symbol.
struct ShapeRange {
  int64_t min = 1;
  int64_t max = 1;
};

struct Shapes {
  ShapeRange batch{1, 1};
  ShapeRange seq{1, 2048};
  ShapeRange past{0, 0};     // max 0: prefill only, no cache
  int64_t page_size = 0;     // positions of the cache in a page; 0: each sequence's lie in a row
  bool last_logits = false;  // of one position of each sequence only
  int64_t layers = 0;        // only the first so many; 0: all
};

}  // namespace hackc::frontend
