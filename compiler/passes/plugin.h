// SPDX-License-Identifier: MIT
// Passes from a shared library, put into the tables without a rebuild: `hackc-server --pass-plugin
// lib.so`, `hackc-opt --pass-plugin lib.so`. The library is built from this tree's headers by the
// same compiler, and takes the compiler's functions from the program that loads it:
//
//   absl::StatusOr<hackc::ir::TileFn> UnitLoops(const hackc::ir::TileFn& tile) { ... }
//   extern "C" void hackc_pass_plugin(hackc::passes::PassTables& tables) {
//     tables.kernel.insert(tables.kernel.begin(), {"unit_loops", &UnitLoops});
//   }
//
// Thread safety: load before the first compile; from then on the tables do not change.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "compiler/passes/pipeline.h"

namespace hackc::passes {

// FAILED_PRECONDITION with the loader's words, or when the library has no hackc_pass_plugin.
absl::Status LoadPassPlugin(const std::string& path);

// What the loaded libraries hold, as a part of keys: results with and without them never mix. Empty
// without any.
std::string PluginFingerprint();

}  // namespace hackc::passes
