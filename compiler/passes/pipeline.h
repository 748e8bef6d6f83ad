// SPDX-License-Identifier: MIT
// The ordered tables of passes, those that see a whole model and those that take one kernel from
// Loop IR to Kernel IR, and how passes are run: verified after each, and timed.
//
//   ASSIGN(LoweredModule m, LowerModule(graph));
//   const ir::LoopFn& loop = m.loops.segments[1].ops[0].fn;
//   ASSIGN(LoweredKernel k, LowerLoop(loop, ChooseSchedule(loop, target), limits));
//
// INTERNAL when a pass breaks a rule or its own assumptions: the message names the pass and the
// kernel, and the status carries the IR before it (support/replay.h).
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/kernel_verify.h"
#include "compiler/ir/loop_module.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/tensor.h"
#include "compiler/passes/loop/split_reductions.h"

namespace hackc::passes {

using AnyIr =
    std::variant<ir::GraphModule, ir::TensorModule, ir::LoopModule, ir::TileFn, ir::KernelFn>;

struct Pass {
  std::string_view name;
  std::variant<
      ir::GraphModule (*)(const ir::GraphModule&), ir::TensorModule (*)(const ir::GraphModule&),
      ir::TensorModule (*)(const ir::TensorModule&), ir::LoopModule (*)(const ir::TensorModule&),
      ir::LoopModule (*)(const ir::LoopModule&),
      ir::LoopModule (*)(const ir::LoopModule&, const SplitOptions&),
      absl::StatusOr<ir::TileFn> (*)(const ir::TileFn&),
      absl::StatusOr<ir::KernelFn> (*)(const ir::TileFn&),
      absl::StatusOr<ir::KernelFn> (*)(const ir::KernelFn&)>
      run;
};
struct PassTables {
  std::vector<Pass> module, kernel;
};
PassTables& EditablePasses();  // for plugin.h
inline const std::vector<Pass>& ModulePasses() { return EditablePasses().module; }
inline const std::vector<Pass>& KernelPasses() { return EditablePasses().kernel; }

using PassTimes = std::vector<std::pair<std::string, double>>;  // pass name, milliseconds

struct LoweredModule {
  ir::GraphModule graph;    // after the graph passes
  ir::TensorModule tensor;  // after the tensor passes
  ir::LoopModule loops;
  PassTimes times;
};

absl::StatusOr<LoweredModule> LowerModule(ir::GraphModule graph, const SplitOptions& split = {});

struct LoweredKernel {
  ir::TileFn tile;  // after the tile passes
  ir::KernelFn kernel;
  PassTimes times;
};

// The last pass's IR is verified for the target's limits.
absl::StatusOr<LoweredKernel> LowerLoop(const ir::LoopFn& loop, const ir::Schedule& schedule,
                                        const ir::KernelLimits& limits = {});

}  // namespace hackc::passes
