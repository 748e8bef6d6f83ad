// SPDX-License-Identifier: MIT
// The passes that take one kernel from Loop IR to Kernel IR, in order.
//
//   ASSIGN(LoweredKernel k, LowerLoop(loop, ChooseSchedule(loop, target), limits));
//   Print(k.tile); Print(k.kernel);
//
// Thread safety: pure function.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/kernel_verify.h"
#include "compiler/ir/stmt.h"
#include "compiler/passes/pipeline.h"

namespace hackc::passes {

struct LoweredKernel {
  ir::TileFn tile;
  ir::KernelFn kernel;
  PassTimes times;
};

const std::vector<Pass>& KernelPasses();
std::vector<Pass>& EditableKernelPasses();  // for plugin.h

// What leaves a pass is verified, the last for the target's limits. INTERNAL names the pass and the
// kernel, and carries the IR before it (support/replay.h).
absl::StatusOr<LoweredKernel> LowerLoop(const ir::LoopFn& loop, const ir::Schedule& schedule,
                                        const ir::KernelLimits& limits = {});

}  // namespace hackc::passes
