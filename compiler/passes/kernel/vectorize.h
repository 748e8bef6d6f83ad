// SPDX-License-Identifier: MIT
// Kernel IR -> Kernel IR: unrolled copies between memory and a register array become vector
// accesses.
//
//   for %i: unroll in 8 { @r[%i] = @x[%row, (%c * 8) + %i if %row < seq] }   ->   vector load of 8
//
// Taken only where the address is provably a multiple of the vector's size, the elements are
// consecutive, and one guard holds for all of them; otherwise the loop stays as it is. Widths are
// 16, 8 or 4 bytes; a longer loop becomes a loop of vectors. Copies from memory into a ring
// (Alloc.slots) become cp.async. Thread safety: a pure function.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hackc::passes {

absl::StatusOr<ir::KernelFn> Vectorize(const ir::KernelFn& kernel);

}  // namespace hackc::passes
