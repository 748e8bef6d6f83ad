// SPDX-License-Identifier: MIT
// Graph IR to Tensor IR: each operation becomes its algebra, and each rounding a visible cast.
//
//   %y: bf16[b, s, 4608] = linear(%x, %w, %bias)
// becomes
//   %y.sum: f32[b, s, 4608] = contract over [k in 3584] f32(@x[b, s, k]) * f32(@w[c, k])
//   %y: bf16[b, s, 4608] = map bf16(@y.sum[b, s, c] + f32(@bias[c]))
//
// Needs a graph that verifies. Values keep their names; new ones are NAME.part. Labels say what an
// operation is for and name the kernels: "qkv_linear", "attention", "input_norm".
// Thread safety: pure function.
#pragma once

#include "compiler/ir/graph.h"
#include "compiler/ir/tensor.h"

namespace hackc::passes {

ir::TensorModule LowerGraph(const ir::GraphModule& graph);

}  // namespace hackc::passes
