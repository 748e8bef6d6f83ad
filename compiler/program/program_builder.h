// SPDX-License-Identifier: MIT
// A Loop module becomes a Program: which kernels there are, what is prepared from the weights,
// where every value lives and what is launched in which order.
//
//   ProgramPlan plan = BuildProgram({{"prefill", module}}, "sm_90a");
//   for (size_t i = 0; i < plan.loops.size(); ++i) {
//     Kernel contract = MakeContract(plan.loops[i], Lower(plan.loops[i]), entry, "sm_90a");
//     contract.name = plan.program.kernels[i].name; ...
//
// The kernels of the program hold only their names until then. Launches with the same Loop text
// share a kernel, so that their number does not grow with depth. Thread safety: pure.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/loop_module.h"
#include "compiler/program/program.h"

namespace hackc::program {

struct ProgramPlan {
  Program program;
  // One for each kernel. Its name is not the kernel's, which is unique: what differs only in the
  // ranges of its symbols often becomes equal CUDA text, and is then compiled once.
  std::vector<ir::LoopFn> loops;
};

// A module that becomes an entry point.
struct EntryModule {
  std::string name;
  ir::LoopModule module;
};

// Entry points share kernels, inputs, outputs, weights, constants, states and what is prepared,
// wherever theirs are equal; each has its own launches and workspace plan. Modules of one model
// name what the caller binds alike and have the same symbols, with bounds of their own; the
// program's bounds cover all.
ProgramPlan BuildProgram(const std::vector<EntryModule>& entries, const std::string& arch);

// Text that two launches share exactly when one kernel serves both: the Loop text without its name
// and purpose, with the bounds of the symbols that it uses.
std::string KernelText(const ir::LoopFn& fn);

}  // namespace hackc::program
