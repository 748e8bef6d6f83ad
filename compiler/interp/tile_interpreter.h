// SPDX-License-Identifier: MIT
// Reference semantics of Tile IR: grid, serial and local loops all count up one after another, an
// Alloc is one array of the whole block, and Combine has nothing to do. Schedule and layouts decide
// how values are spread, never what they are, so they are not looked at. See function_run.h for an
// example.
//
// Thread safety: pure function of its arguments.
#pragma once

#include "absl/status/status.h"
#include "compiler/interp/function_run.h"
#include "compiler/ir/stmt.h"

namespace hackc::interp {

absl::Status RunTile(const ir::TileFn& fn, FunctionRun& run);

}  // namespace hackc::interp
