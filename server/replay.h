// SPDX-License-Identifier: MIT
// A compiler whose failures leave a file: the IR before the step that failed, with a first line that says which step
// and target, as `hackc-opt FILE` runs it. The message ends with the file's path.
//
//   std::shared_ptr<CompilerBackend> backend = WithReplayFiles(LinkedCompiler(), "/var/cache/hackc/replay");
//
// The folder is made with the first file; it holds the newest 32, and equal failures share one. A folder that cannot be
// written costs the file, not the answer. Thread safety: as CompilerBackend says, over processes too.
#pragma once

#include <memory>
#include <string>

#include "server/backend.h"

namespace hackc::server {

std::shared_ptr<CompilerBackend> WithReplayFiles(std::shared_ptr<CompilerBackend> backend,
                                                 std::string directory);

// CACHE_DIR/replay, or a folder of this user's among the temporary ones when there is no cache.
std::string DefaultReplayDir(const std::string& cache_dir);

}  // namespace hackc::server
