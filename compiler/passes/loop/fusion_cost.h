// SPDX-License-Identifier: MIT
// What a kernel costs, counted on its loops; and the gate that every fusion has to pass.
//
// Three counts, none of which a schedule can take back:
//   bytes       loaded and stored by each iteration, every distinct element of a loop body once;
//               integers only where they vary with the loop
//   trips       iterations of all loops, serial or not
//   operations  floating-point operations, transcendental ones counted as eight
// A fusion is taken only if none of the three exceeds the sum over the separate kernels, both at
// the smallest and at the largest sizes. So a value is never recomputed: a row's statistic for each
// cell, a norm for each column of a matrix product.
//
// Thread safety: pure functions.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace hackc::passes {

struct FusionCost {
  double bytes = 0;
  double trips = 0;
  double operations = 0;
};

// Of all `kernels`, with all symbols at their minimum (`largest` false) or maximum.
FusionCost CostOf(const std::vector<const ir::Function*>& kernels, bool largest);

// Whether the kernels `fused` cost no more than `separate` in any count.
bool CostsNoMore(const std::vector<const ir::Function*>& fused,
                 const std::vector<const ir::Function*>& separate);

}  // namespace hackc::passes
