// SPDX-License-Identifier: MIT
// Removes operations whose values nothing reads. What a segment yields and what updates a state is
// alive.
//
// Tensor IR to Tensor IR. Sources stay: they are the caller's contract. Thread safety: pure
// function.
#pragma once

#include "compiler/ir/tensor.h"

namespace hackc::passes {

ir::TensorModule DeadValues(const ir::TensorModule& module);

}  // namespace hackc::passes
