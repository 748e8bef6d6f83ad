// SPDX-License-Identifier: MIT
#include "compiler/interp/kernel_interpreter.h"

#include "compiler/interp/lane_machine.h"
#include "compiler/support/cat.h"

namespace hackc::interp {

absl::Status RunKernel(const ir::KernelFn& kernel, FunctionRun& run,
                       const KernelRunOptions& options) {
  if (kernel.threads < 1 || kernel.threads > 1024 || kernel.grid.size() != 3) {
    return absl::InvalidArgumentError(Cat("kernel ", kernel.fn.name, ": ", kernel.threads,
                                          " threads, grid rank ", kernel.grid.size(),
                                          "; 1 to 1024 and 3 are possible"));
  }
  LaneLaunch launch;
  launch.level = "kernel";
  launch.lanes = kernel.threads;
  launch.grid = kernel.grid;
  launch.traced = options.find_races;
  launch.reverse_blocks = options.reverse_blocks;
  return RunLanes(kernel.fn, launch, run);
}

}  // namespace hackc::interp
