// SPDX-License-Identifier: MIT
// Reference semantics of Loop IR: loops count up one after another, every access is checked against
// the buffer's shape. See function_run.h for an example.
//
// Thread safety: pure function of its arguments.
#pragma once

#include "absl/status/status.h"
#include "compiler/interp/function_run.h"
#include "compiler/ir/stmt.h"

namespace hackc::interp {

absl::Status RunLoop(const ir::LoopFn& fn, FunctionRun& run);

}  // namespace hackc::interp
