// SPDX-License-Identifier: MIT
// The engine in one process, with the compiler on threads: what `hackc-client --local` and
// embedders use. The store is the same as the daemon's, so each answers from what the other
// compiled.
//
//   ASSIGN(std::unique_ptr<Engine> engine, OpenLocalEngine({.cache_dir = DefaultCacheDir()}));
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/backend.h"
#include "server/engine.h"

namespace hackc::server {

struct LocalOptions {
  std::string arch = "sm_90a";  // for requests that name none
  int workers = 0;              // 0: one for each core
  std::string cache_dir;        // empty: nothing is kept after the process
  uint64_t cache_bytes = uint64_t{4} << 30;
  std::shared_ptr<CompilerBackend> backend;  // null: the compiler that this binary is linked with
};

// $XDG_CACHE_HOME/hackc, else ~/.cache/hackc, else empty.
std::string DefaultCacheDir();

absl::StatusOr<std::unique_ptr<Engine>> OpenLocalEngine(const LocalOptions& options);

}  // namespace hackc::server
