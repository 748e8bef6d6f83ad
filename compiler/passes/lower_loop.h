// SPDX-License-Identifier: MIT
// The passes that take one kernel from Loop IR to Kernel IR, in order.
//
//   ASSIGN(LoweredKernel k, LowerLoop(loop, ChooseSchedule(loop, target), limits));
//   Print(k.tile); Print(k.kernel);
//
// Thread safety: pure function.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/kernel_verify.h"
#include "compiler/ir/stmt.h"

namespace hackc::passes {

struct LoweredKernel {
  ir::TileFn tile;
  ir::KernelFn kernel;
  std::vector<std::pair<std::string, double>> times;  // pass name, milliseconds
};

// One row of the table: a Tile pass, a Kernel pass, or the lowering between.
struct KernelPass {
  std::string_view name;
  std::variant<absl::StatusOr<ir::TileFn> (*)(const ir::TileFn&),
               absl::StatusOr<ir::KernelFn> (*)(const ir::TileFn&),
               absl::StatusOr<ir::KernelFn> (*)(const ir::KernelFn&)>
      run;
};
const std::vector<KernelPass>& KernelPasses();
std::vector<KernelPass>& EditableKernelPasses();  // for plugin.h

// What leaves a pass is verified, the last for the target's limits. INTERNAL names the pass and the
// kernel, and carries the IR before it (support/replay.h).
absl::StatusOr<LoweredKernel> LowerLoop(const ir::LoopFn& loop, const ir::Schedule& schedule,
                                        const ir::KernelLimits& limits = {});

}  // namespace hackc::passes
