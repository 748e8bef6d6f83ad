// SPDX-License-Identifier: MIT
#include "compiler/passes/lower_loop.h"

#include <utility>

#include "absl/strings/str_join.h"
#include "compiler/ir/loop_verify.h"
#include "compiler/ir/stmt_text.h"
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

std::vector<Pass>& EditableKernelPasses() {
  static auto* table = new std::vector<Pass>{
      {"expand_softmax", &ExpandSoftmax}, {"split_axes", &SplitAxes},
      {"distribute", &Distribute},        {"pipeline_copies", &PipelineCopies},
      {"vectorize", &Vectorize},          {"insert_barriers", &InsertBarriers},
  };
  return *table;
}
const std::vector<Pass>& KernelPasses() { return EditableKernelPasses(); }

absl::StatusOr<LoweredKernel> LowerLoop(const ir::LoopFn& loop, const ir::Schedule& schedule,
                                        const ir::KernelLimits& limits) {
  const PassContext context{.of = Cat(", kernel ", loop.fn.name), .limits = limits};
  if (const auto errors = ir::VerifyLoop(loop); !errors.empty()) {
    return Replayable("none", Cat("pass none", context.of, ": ", absl::StrJoin(errors, "\n")),
                      ir::Print(loop));
  }
  LoweredKernel out;
  const auto keep = [&](std::string_view, const AnyIr& before, const AnyIr&) {
    if (const auto* last = std::get_if<ir::TileFn>(&before)) out.tile = *last;
  };
  HACKC_ASSIGN_OR_RETURN(AnyIr kernel, RunPasses(KernelPasses(), ir::TileFn{loop.fn, schedule},
                                                 context, out.times, keep));
  out.kernel = std::get<ir::KernelFn>(std::move(kernel));
  return out;
}

}  // namespace hackc::passes
