// SPDX-License-Identifier: MIT
#include "compiler/interp/tile_interpreter.h"

#include "compiler/interp/lane_machine.h"

namespace hackc::interp {

absl::Status RunTile(const ir::TileFn& fn, FunctionRun& run) {
  LaneLaunch launch;
  launch.level = "tile";
  return RunLanes(fn.fn, launch, run);
}

}  // namespace hackc::interp
