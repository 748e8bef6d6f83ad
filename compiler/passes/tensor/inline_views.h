// SPDX-License-Identifier: MIT
// Views vanish into their consumers: a load of a view becomes a load of its source, at composed and
// simplified indices. Views that are returned or carried stay.
//
//   %q = view @qkv[b, s, h * 128 + d]
//   %y = map f32(@q[b, s, h, d])
// becomes
//   %y = map f32(@qkv[b, s, h * 128 + d])
//
// Tensor IR to Tensor IR. Unused views are left to dead_values. Thread safety: pure function.
#pragma once

#include "compiler/ir/tensor.h"

namespace hackc::passes {

ir::TensorModule InlineViews(const ir::TensorModule& module);

}  // namespace hackc::passes
