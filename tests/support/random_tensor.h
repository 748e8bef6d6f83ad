// SPDX-License-Identifier: MIT
// Random Tensor modules that verify: maps, reductions, contractions, views and causal attention,
// over the extents seq, 3, 4 and 6. The same seed gives the same module everywhere.
//
//   ir::TensorModule module = test::RandomTensorModule(seed, 8);   // of eight operations
//
// Sources: inputs x [seq, 6] and z [seq, 4], weights w [3, 6] and v [4, 6], all f32. Thread safety:
// a pure function.
#pragma once

#include "compiler/ir/tensor.h"

namespace hackc::test {

ir::TensorModule RandomTensorModule(unsigned seed, int ops);

}  // namespace hackc::test
