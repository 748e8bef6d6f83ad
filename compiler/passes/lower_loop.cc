// SPDX-License-Identifier: MIT
#include "compiler/passes/lower_loop.h"

#include <chrono>
#include <tuple>
#include <utility>

#include "absl/strings/str_join.h"
#include "compiler/ir/loop_verify.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/ir/tile_verify.h"
#include "compiler/passes/kernel/distribute.h"
#include "compiler/passes/kernel/insert_barriers.h"
#include "compiler/passes/kernel/pipeline_copies.h"
#include "compiler/passes/kernel/vectorize.h"
#include "compiler/passes/tile/expand_softmax.h"
#include "compiler/passes/tile/split_axes.h"
#include "compiler/support/cat.h"
#include "compiler/support/replay.h"
#include "compiler/support/status_macros.h"

namespace hackc::passes {

std::vector<KernelPass>& EditableKernelPasses() {
  static auto* table = new std::vector<KernelPass>{
      {"expand_softmax", &ExpandSoftmax}, {"split_axes", &SplitAxes},
      {"distribute", &Distribute},        {"pipeline_copies", &PipelineCopies},
      {"vectorize", &Vectorize},          {"insert_barriers", &InsertBarriers},
  };
  return *table;
}
const std::vector<KernelPass>& KernelPasses() { return EditableKernelPasses(); }

namespace {

using Step = std::pair<ir::TileFn, ir::KernelFn>;  // of these the kernel, once there is one

bool IsTile(const Step& step) { return step.second.fn.name.empty(); }

absl::StatusOr<Step> Run(const KernelPass& pass, Step step) {
  auto& [tile, kernel] = step;
  if (auto* on_tile = std::get_if<0>(&pass.run)) {
    HACKC_ASSIGN_OR_RETURN(tile, (*on_tile)(tile));
  } else if (auto* lower = std::get_if<1>(&pass.run)) {
    HACKC_ASSIGN_OR_RETURN(kernel, (*lower)(tile));
  } else {
    HACKC_ASSIGN_OR_RETURN(kernel, std::get<2>(pass.run)(kernel));
  }
  return step;
}

}  // namespace

absl::StatusOr<LoweredKernel> LowerLoop(const ir::LoopFn& loop, const ir::Schedule& schedule,
                                        const ir::KernelLimits& limits) {
  if (const auto errors = ir::VerifyLoop(loop); !errors.empty()) {
    return Replayable("none",
                      Cat("pass none, kernel ", loop.fn.name, ": ", absl::StrJoin(errors, "\n")),
                      ir::Print(loop));
  }
  LoweredKernel out;
  Step step{{loop.fn, schedule}, {}};
  for (const KernelPass& pass : KernelPasses()) {
    const auto print = [&] {
      return IsTile(step) ? ir::Print(step.first) : ir::Print(step.second);
    };
    const auto work = [&]() -> absl::StatusOr<Step> {
      const auto start = std::chrono::steady_clock::now();
      HACKC_ASSIGN_OR_RETURN(Step next, Run(pass, step));
      std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
      out.times.emplace_back(pass.name, took.count());
      const auto errors =
          IsTile(next) ? ir::VerifyTile(next.first) : ir::VerifyKernel(next.second, limits);
      if (errors.empty()) return next;
      return absl::InternalError(Cat("left wrong IR:\n", absl::StrJoin(errors, "\n")));
    };
    HACKC_ASSIGN_OR_RETURN(
        step, Attempt(pass.name, Cat("pass ", pass.name, ", kernel ", loop.fn.name), print, work));
  }
  std::tie(out.tile, out.kernel) = std::move(step);
  return out;
}

}  // namespace hackc::passes
