// SPDX-License-Identifier: MIT
// The statement interpreter behind loop_interpreter.h, tile_interpreter.h and kernel_interpreter.h.
// Names are resolved once; then each statement runs for all active lanes before the next one
// starts. An `if` or a guard narrows the active lanes, a loop runs while any lane has iterations
// left.
//
// Thread safety: pure function.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "compiler/interp/function_run.h"
#include "compiler/ir/stmt.h"

namespace hackc::interp {

struct LaneLaunch {
  std::string_view level;      // "kernel", for messages
  int lanes = 1;               // threads of a block
  std::vector<ir::Expr> grid;  // three extents over symbols, or none: one block
  bool traced = false;         // look for races
  bool reverse_blocks = false;
};

// InvalidArgument for inputs that do not fit the function; FailedPrecondition for what the code
// does wrong, with its path: "kernel k0 / for %k / store @y: index 9 of dimension 0 is outside
// extent 9".
absl::Status RunLanes(const ir::Function& fn, const LaneLaunch& launch, FunctionRun& run);

}  // namespace hackc::interp
