// SPDX-License-Identifier: MIT
// The one ordered table of the passes that see a whole model, and how they are run: verified after
// each, timed, and shown to whoever wants to see. The passes of a single kernel are in
// lower_loop.h.
//
//   ASSIGN(LoweredModule m, LowerModule(graph));
//   m.loops.segments;
//
// INTERNAL when a pass breaks a rule or its own assumptions: the message names the pass, and the
// status carries the IR before it (support/replay.h). Thread safety: pure functions.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/loop_module.h"
#include "compiler/ir/tensor.h"
#include "compiler/passes/loop/split_reductions.h"

namespace hackc::passes {

using AnyModule = std::variant<ir::GraphModule, ir::TensorModule, ir::LoopModule>;

struct ModulePass {
  std::string_view name;
  std::variant<
      ir::GraphModule (*)(const ir::GraphModule&), ir::TensorModule (*)(const ir::GraphModule&),
      ir::TensorModule (*)(const ir::TensorModule&), ir::LoopModule (*)(const ir::TensorModule&),
      ir::LoopModule (*)(const ir::LoopModule&),
      ir::LoopModule (*)(const ir::LoopModule&, const SplitOptions&)>
      run;
};
const std::vector<ModulePass>& ModulePasses();
std::vector<ModulePass>& EditableModulePasses();  // for plugin.h

using PassTimes = std::vector<std::pair<std::string, double>>;  // pass name, milliseconds

// Called after each pass with the module before and after it.
using ModuleObserver =
    std::function<void(std::string_view pass, const AnyModule& before, const AnyModule& after)>;

struct LoweredModule {
  ir::GraphModule graph;    // after the graph passes
  ir::TensorModule tensor;  // after the tensor passes
  ir::LoopModule loops;
  PassTimes times;
};

absl::StatusOr<LoweredModule> LowerModule(ir::GraphModule graph,
                                          const ModuleObserver& observer = nullptr,
                                          const SplitOptions& split = {});

// Text of a module of any level.
std::string Print(const AnyModule& module);

}  // namespace hackc::passes
