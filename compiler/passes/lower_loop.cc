// SPDX-License-Identifier: MIT
#include "compiler/passes/lower_loop.h"

#include <chrono>
#include <exception>
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

absl::Status Run(const KernelPass& pass, Step& step) {
  auto& [tile, kernel] = step;
  if (auto* on_tile = std::get_if<0>(&pass.run)) {
    HACKC_ASSIGN_OR_RETURN(tile, (*on_tile)(tile));
  } else if (auto* lower = std::get_if<1>(&pass.run)) {
    HACKC_ASSIGN_OR_RETURN(kernel, (*lower)(tile));
  } else {
    HACKC_ASSIGN_OR_RETURN(kernel, std::get<2>(pass.run)(kernel));
  }
  return absl::OkStatus();
}

bool IsTile(const Step& step) { return step.second.fn.name.empty(); }

absl::Status Broken(std::string_view pass, const std::string& name, std::string_view what,
                    const std::string& before) {
  return Replayable(pass, Cat("pass ", pass, ", kernel ", name, ": ", what), before);
}

}  // namespace

absl::StatusOr<LoweredKernel> LowerLoop(const ir::LoopFn& loop, const ir::Schedule& schedule,
                                        const ir::KernelLimits& limits) {
  if (const auto errors = ir::VerifyLoop(loop); !errors.empty()) {
    return Broken("none", loop.fn.name, absl::StrJoin(errors, "\n"), ir::Print(loop));
  }
  LoweredKernel out;
  Step step{{loop.fn, schedule}, {}};
  for (const KernelPass& pass : KernelPasses()) {
    auto start = std::chrono::steady_clock::now();
    const Step before = step;
    const auto broken = [&](std::string_view what) {
      return Broken(pass.name, loop.fn.name, what,
                    IsTile(before) ? ir::Print(before.first) : ir::Print(before.second));
    };
    try {
      if (absl::Status status = Run(pass, step); !status.ok()) {
        return broken({status.message().data(), status.message().size()});
      }
    } catch (const std::exception& error) {  // InternalError, or the standard library's
      return broken(error.what());
    }
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    out.times.emplace_back(pass.name, took.count());
    const auto errors =
        IsTile(step) ? ir::VerifyTile(step.first) : ir::VerifyKernel(step.second, limits);
    if (!errors.empty()) return broken(Cat("left wrong IR:\n", absl::StrJoin(errors, "\n")));
  }
  std::tie(out.tile, out.kernel) = std::move(step);
  return out;
}

}  // namespace hackc::passes
