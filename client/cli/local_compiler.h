// SPDX-License-Identifier: MIT
// The compiler in this process, with the same cache as a server's: what `--local` uses.
//
//   HACKC_ASSIGN_OR_RETURN(std::unique_ptr<CompilerApi> compiler, OpenLocalCompiler(""));
//
// Thread safety: one call at a time on one object.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/compiler_api.h"

namespace hackc::client {

// An empty `cache_dir` is the user's own cache folder. UNIMPLEMENTED in a build without the
// compiler.
absl::StatusOr<std::unique_ptr<CompilerApi>> OpenLocalCompiler(const std::string& cache_dir);

}  // namespace hackc::client
