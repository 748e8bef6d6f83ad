// SPDX-License-Identifier: MIT
#include "compiler/passes/pipeline.h"

#include <chrono>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/graph_text.h"
#include "compiler/ir/graph_verify.h"
#include "compiler/ir/loop_verify.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/ir/tensor_text.h"
#include "compiler/ir/tensor_verify.h"
#include "compiler/passes/graph/fuse_projections.h"
#include "compiler/passes/loop/lower_tensor.h"
#include "compiler/passes/loop/merge_launches.h"
#include "compiler/passes/tensor/dead_values.h"
#include "compiler/passes/tensor/inline_views.h"
#include "compiler/passes/tensor/lower_graph.h"
#include "compiler/support/cat.h"
#include "compiler/support/internal_error.h"
#include "compiler/support/replay.h"
#include "compiler/support/status_macros.h"

namespace hackc::passes {
namespace {

std::vector<std::string> Verify(const AnyModule& module) {
  if (const auto* graph = std::get_if<ir::GraphModule>(&module)) return ir::VerifyGraph(*graph);
  if (const auto* tensor = std::get_if<ir::TensorModule>(&module)) return ir::VerifyTensor(*tensor);
  std::vector<std::string> errors;
  for (const ir::LoopSegment& segment : std::get<ir::LoopModule>(module).segments) {
    for (const ir::LoopLaunch& launch : segment.ops) {
      for (const std::string& error : ir::VerifyLoop(launch.fn)) {
        errors.push_back(Cat("segment ", segment.name, " / ", error));
      }
    }
  }
  return errors;
}

AnyModule Run(const ModulePass& pass, const AnyModule& before, const SplitOptions& split) {
  return std::visit(
      [&]<typename Target, typename Source, typename... Options>(
          Target (*function)(const Source&, Options...)) -> AnyModule {
        const Source* source = std::get_if<Source>(&before);
        HACKC_CHECK(source != nullptr) << "pass " << pass.name << " stands at the wrong level";
        if constexpr (sizeof...(Options) > 0) {
          return function(*source, split);
        } else {
          return function(*source);
        }
      },
      pass.run);
}

}  // namespace

std::vector<ModulePass>& EditableModulePasses() {
  static auto* table = new std::vector<ModulePass>{
      {"fuse_projections", &FuseProjections}, {"lower_graph", &LowerGraph},
      {"inline_views", &InlineViews},         {"dead_values", &DeadValues},
      {"lower_tensor", &LowerTensor},         {"merge_launches", &MergeLaunches},
      {"split_reductions", &SplitReductions},
  };
  return *table;
}
const std::vector<ModulePass>& ModulePasses() { return EditableModulePasses(); }

absl::StatusOr<LoweredModule> LowerModule(ir::GraphModule graph, const ModuleObserver& observer,
                                          const SplitOptions& split) {
  LoweredModule lowered;
  AnyModule current = std::move(graph);
  if (auto errors = Verify(current); !errors.empty()) {
    return Replayable("none", Cat("pass front end: ", absl::StrJoin(errors, "\n")), Print(current));
  }
  // A Loop module has no text that reads back as one: it is made again from the Tensor IR.
  std::string since_tensor;
  const auto print = [&] {
    return std::holds_alternative<ir::LoopModule>(current) ? ir::Print(lowered.tensor)
                                                           : Print(current);
  };
  for (const ModulePass& pass : ModulePasses()) {
    const auto work = [&]() -> absl::StatusOr<AnyModule> {
      const auto start = std::chrono::steady_clock::now();
      AnyModule next = Run(pass, current, split);
      std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
      lowered.times.emplace_back(pass.name, took.count());
      if (auto errors = Verify(next); !errors.empty()) {
        return absl::InternalError(absl::StrJoin(errors, "\n"));
      }
      return next;
    };
    HACKC_ASSIGN_OR_RETURN(AnyModule next, Attempt(Cat(since_tensor, pass.name),
                                                   Cat("pass ", pass.name), print, work));
    if (observer) observer(pass.name, current, next);
    if (next.index() != current.index()) {
      if (auto* last = std::get_if<ir::GraphModule>(&current)) lowered.graph = std::move(*last);
      if (auto* last = std::get_if<ir::TensorModule>(&current)) lowered.tensor = std::move(*last);
    }
    current = std::move(next);
    if (std::holds_alternative<ir::LoopModule>(current)) since_tensor += Cat(pass.name, ",");
  }
  lowered.loops = std::get<ir::LoopModule>(std::move(current));
  return lowered;
}

std::string Print(const AnyModule& module) {
  if (const auto* graph = std::get_if<ir::GraphModule>(&module)) return ir::Print(*graph);
  if (const auto* tensor = std::get_if<ir::TensorModule>(&module)) return ir::Print(*tensor);
  std::string text;
  if (const auto* loops = std::get_if<ir::LoopModule>(&module)) {
    for (const ir::LoopSegment& segment : loops->segments) {
      text += Cat("# segment ", segment.name, ", ", segment.count, " times\n");
      for (const ir::LoopLaunch& launch : segment.ops) {
        text += Cat("# ", absl::StrJoin(launch.args, ", "), "\n", ir::Print(launch.fn));
      }
    }
  }
  return text;
}

}  // namespace hackc::passes
