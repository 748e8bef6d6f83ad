// SPDX-License-Identifier: MIT
// A compiler whose failures leave a file: the IR before the step that failed, with a first line
// that says which step and target, as `hackc-opt FILE` runs it; or, where no step told of its IR,
// the call itself: the config with its ranges, a kernel's CUDA text. The message ends with the
// command.
//
//   const ReplayOptions options{.directory = "/var/cache/hackc/replay"};
//   std::shared_ptr<CompilerBackend> backend = WithReplayFiles(LinkedCompiler(), options);
//   status = LeaveReplay(status, worker_request, options);  // of a worker that was lost
//
// What a caller causes leaves none. The folder is made with the first file; it holds the newest 32,
// and equal failures share one. A folder that cannot be written costs the file, not the answer.
// Thread safety: as CompilerBackend says, over processes too.
#pragma once

#include <memory>
#include <string>

#include "hackc/v1/worker.pb.h"
#include "server/backend.h"

namespace hackc::server {

struct ReplayOptions {
  std::string directory;
  std::string pass_plugin;  // that hackc-opt needs as well
};

std::shared_ptr<CompilerBackend> WithReplayFiles(std::shared_ptr<CompilerBackend> backend,
                                                 ReplayOptions options);

// `status` of a call that ended without an answer, with the file that repeats the call in its
// message.
absl::Status LeaveReplay(const absl::Status& status, const v1::worker::Request& request,
                         const ReplayOptions& options);

// CACHE_DIR/replay, or a folder of this user's among the temporary ones when there is no cache.
std::string DefaultReplayDir(const std::string& cache_dir);

}  // namespace hackc::server
