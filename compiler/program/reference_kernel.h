// SPDX-License-Identifier: MIT
// A kernel as plain as its Loop IR, which the measured results of the compiled one are held
// against: one thread for each point of the outer free loops, everything inside it in program
// order, sums in float64. It shares nothing with the schedule and the passes below Loop IR; only
// the emitter of CUDA text is the same.
//
//   KernelFn plain = PlainKernel(loop);  // Kernel IR, for interpreters and the emitter
//   for (const BufferUse& use : UsesOf(loop)) ...        // in the order of the parameters
//
// Softmax states are updated score by score, so nothing is rescaled in another order than Loop IR
// says. Thread safety: pure functions.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/program/program.h"

namespace hackc::program {

ir::KernelFn PlainKernel(const ir::LoopFn& loop);

std::vector<BufferUse> UsesOf(const ir::LoopFn& loop);

Rounding RoundingOf(const ir::LoopFn& loop);

}  // namespace hackc::program
