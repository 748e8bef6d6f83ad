// SPDX-License-Identifier: MIT
// A Loop module becomes a Program: which kernels there are, what is prepared from the weights, where every
// value lives and what is launched in which order.
//
//   ProgramPlan plan = BuildProgram(module, "sm_90a");
//   for (size_t i = 0; i < plan.loops.size(); ++i)
//     plan.program.kernels[i] = MakeContract(plan.loops[i], Lower(plan.loops[i]), entry, "sm_90a");
//
// The kernels of the program hold only their names until then. Launches with the same Loop text share a
// kernel, so that their number does not grow with depth. Thread safety: pure.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/loop_module.h"
#include "compiler/program/program.h"

namespace hackc::program {

struct ProgramPlan {
  Program program;
  std::vector<ir::LoopFn> loops;  // one for each kernel, with unique names
};

ProgramPlan BuildProgram(const ir::LoopModule& module, const std::string& arch);

}  // namespace hackc::program
