// SPDX-License-Identifier: MIT
// Tensor IR to Loop IR: decides which values never reach memory, and writes one kernel for each of
// the others.
//
//   %sum = contract ...; %y = map bf16(@sum[b, s, c] + f32(@bias[c])); %z = map of @y
// becomes the kernel of %y with the contract inside, and %z with it if the cost gate lets it.
//
// Values that must reach memory: what a segment yields, updated states, and what depends on weights
// only (program building runs those once, when weights are loaded). Every other value is tried,
// consumers first: it is fused into all kernels that read it, if fusion_cost.h finds that they cost
// no more than before. A map that several kernels read and that finishes a sum stays one, with the
// sum inside. Needs a module that verifies, without dead values. Thread safety: pure
// function.
#pragma once

#include "compiler/ir/loop_module.h"
#include "compiler/ir/tensor.h"

namespace hackc::passes {

ir::LoopModule LowerTensor(const ir::TensorModule& module);

}  // namespace hackc::passes
