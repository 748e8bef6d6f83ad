// SPDX-License-Identifier: MIT
#include "compiler/interp/loop_interpreter.h"

#include "compiler/interp/lane_machine.h"

namespace hackc::interp {

absl::Status RunLoop(const ir::LoopFn& fn, FunctionRun& run) {
  LaneLaunch launch;
  launch.level = "loop";
  return RunLanes(fn.fn, launch, run);
}

}  // namespace hackc::interp
