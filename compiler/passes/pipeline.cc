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
#include "compiler/ir/tile_verify.h"
#include "compiler/passes/graph/fuse_projections.h"
#include "compiler/passes/kernel/distribute.h"
#include "compiler/passes/kernel/insert_barriers.h"
#include "compiler/passes/kernel/pipeline_copies.h"
#include "compiler/passes/kernel/vectorize.h"
#include "compiler/passes/loop/lower_tensor.h"
#include "compiler/passes/loop/merge_launches.h"
#include "compiler/passes/tensor/dead_values.h"
#include "compiler/passes/tensor/inline_views.h"
#include "compiler/passes/tensor/lower_graph.h"
#include "compiler/passes/tile/expand_softmax.h"
#include "compiler/passes/tile/split_axes.h"
#include "compiler/support/cat.h"
#include "compiler/support/internal_error.h"
#include "compiler/support/replay.h"
#include "compiler/support/status_macros.h"

namespace hackc::passes {
namespace {

// What passes and verifiers want to know besides the IR.
struct Context {
  std::string of;  // ", kernel NAME" in messages
  SplitOptions split;
  ir::KernelLimits limits;
};

std::vector<std::string> Verify(const AnyIr& module, const Context& context) {
  if (const auto* graph = std::get_if<ir::GraphModule>(&module)) return ir::VerifyGraph(*graph);
  if (const auto* tensor = std::get_if<ir::TensorModule>(&module)) return ir::VerifyTensor(*tensor);
  if (const auto* tile = std::get_if<ir::TileFn>(&module)) return ir::VerifyTile(*tile);
  if (const auto* kernel = std::get_if<ir::KernelFn>(&module))
    return ir::VerifyKernel(*kernel, context.limits);
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

absl::StatusOr<AnyIr> Run(const Pass& pass, const AnyIr& before, const SplitOptions& split) {
  return std::visit(
      [&]<typename Target, typename Source, typename... Options>(
          Target (*function)(const Source&, Options...)) -> absl::StatusOr<AnyIr> {
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

// `first`, and what each of `passes` made of it.
absl::StatusOr<std::vector<AnyIr>> RunPasses(const std::vector<Pass>& passes, AnyIr first,
                                             const Context& context, PassTimes& times) {
  std::vector<AnyIr> stages = {std::move(first)};
  // A Loop module has no text that reads back as one: it is made again from the IR before it.
  size_t readable = 0;
  std::string again;
  const auto print = [&] {
    return std::visit(
        [](const auto& any) -> std::string {
          if constexpr (requires { ir::Print(any); }) return ir::Print(any);
          return "";
        },
        stages[readable]);
  };
  for (const Pass& pass : passes) {
    const auto work = [&]() -> absl::StatusOr<AnyIr> {
      const auto start = std::chrono::steady_clock::now();
      HACKC_ASSIGN_OR_RETURN(AnyIr next, Run(pass, stages.back(), context.split));
      std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
      times.emplace_back(pass.name, took.count());
      const auto errors = Verify(next, context);
      if (errors.empty()) return next;
      return absl::InternalError(Cat("left wrong IR:\n", absl::StrJoin(errors, "\n")));
    };
    HACKC_ASSIGN_OR_RETURN(AnyIr next, Attempt(Cat(again, pass.name),
                                               Cat("pass ", pass.name, context.of), print, work));
    const bool module = std::holds_alternative<ir::LoopModule>(next);
    again = module ? Cat(again, pass.name, ",") : "";
    if (!module) readable = stages.size();
    stages.push_back(std::move(next));
  }
  return stages;
}

template <typename T>
void TakeLast(std::vector<AnyIr>& stages, T& last) {
  for (AnyIr& stage : stages) {
    if (T* of_level = std::get_if<T>(&stage)) last = std::move(*of_level);
  }
}

}  // namespace

PassTables& EditablePasses() {
  static auto* tables = new PassTables{.module = {{"fuse_projections", &FuseProjections},
                                                  {"lower_graph", &LowerGraph},
                                                  {"inline_views", &InlineViews},
                                                  {"dead_values", &DeadValues},
                                                  {"lower_tensor", &LowerTensor},
                                                  {"merge_launches", &MergeLaunches},
                                                  {"split_reductions", &SplitReductions}},
                                       .kernel = {{"expand_softmax", &ExpandSoftmax},
                                                  {"split_axes", &SplitAxes},
                                                  {"distribute", &Distribute},
                                                  {"pipeline_copies", &PipelineCopies},
                                                  {"vectorize", &Vectorize},
                                                  {"insert_barriers", &InsertBarriers}}};
  return *tables;
}

absl::StatusOr<LoweredModule> LowerModule(ir::GraphModule graph, const SplitOptions& split) {
  if (auto errors = ir::VerifyGraph(graph); !errors.empty()) {
    return Replayable("none", Cat("pass front end: ", absl::StrJoin(errors, "\n")),
                      ir::Print(graph));
  }
  LoweredModule lowered;
  HACKC_ASSIGN_OR_RETURN(
      auto stages, RunPasses(ModulePasses(), std::move(graph), {.split = split}, lowered.times));
  TakeLast(stages, lowered.graph);
  TakeLast(stages, lowered.tensor);
  TakeLast(stages, lowered.loops);
  return lowered;
}

absl::StatusOr<LoweredKernel> LowerLoop(const ir::LoopFn& loop, const ir::Schedule& schedule,
                                        const ir::KernelLimits& limits) {
  const Context context{.of = Cat(", kernel ", loop.fn.name), .limits = limits};
  if (const auto errors = ir::VerifyLoop(loop); !errors.empty()) {
    return Replayable("none", Cat("pass none", context.of, ": ", absl::StrJoin(errors, "\n")),
                      ir::Print(loop));
  }
  LoweredKernel lowered;
  HACKC_ASSIGN_OR_RETURN(auto stages, RunPasses(KernelPasses(), ir::TileFn{loop.fn, schedule},
                                                context, lowered.times));
  TakeLast(stages, lowered.tile);
  TakeLast(stages, lowered.kernel);
  return lowered;
}

}  // namespace hackc::passes
