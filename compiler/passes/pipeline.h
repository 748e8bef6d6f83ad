// SPDX-License-Identifier: MIT
// The one ordered table of the passes that see a whole model, and how passes are run: verified
// after each, timed, and shown to whoever wants to see. The table of a single kernel's passes is in
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
const std::vector<Pass>& ModulePasses();
std::vector<Pass>& EditableModulePasses();  // for plugin.h

using PassTimes = std::vector<std::pair<std::string, double>>;  // pass name, milliseconds

// Called after each pass with the IR before and after it.
using PassObserver =
    std::function<void(std::string_view pass, const AnyIr& before, const AnyIr& after)>;

// What passes and verifiers want to know besides the IR.
struct PassContext {
  std::string of;  // ", kernel NAME" in messages
  SplitOptions split;
  ir::KernelLimits limits;
};

// `current` after all of `passes`.
absl::StatusOr<AnyIr> RunPasses(const std::vector<Pass>& passes, AnyIr current,
                                const PassContext& context, PassTimes& times,
                                const PassObserver& observer);

struct LoweredModule {
  ir::GraphModule graph;    // after the graph passes
  ir::TensorModule tensor;  // after the tensor passes
  ir::LoopModule loops;
  PassTimes times;
};

absl::StatusOr<LoweredModule> LowerModule(ir::GraphModule graph,
                                          const PassObserver& observer = nullptr,
                                          const SplitOptions& split = {});

// Text of IR of any level.
std::string Print(const AnyIr& module);

}  // namespace hackc::passes
