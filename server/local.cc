// SPDX-License-Identifier: MIT
#include "server/local.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "cache/memory_store.h"
#include "cache/sqlite_store.h"
#include "compiler/support/status_macros.h"
#include "server/backend.h"
#include "server/replay.h"
#include "server/worker.h"
#include "server/worker_pool.h"

namespace hackc::server {

absl::StatusOr<std::unique_ptr<Engine>> OpenLocalEngine(const LocalOptions& options) {
  std::shared_ptr<cache::Store> store = std::make_shared<cache::MemoryStore>();
  if (!options.cache_dir.empty()) {
    HACKC_ASSIGN_OR_RETURN(
        store, cache::OpenSqliteStore({.directory = options.cache_dir,
                                       .limit_bytes = static_cast<int64_t>(options.cache_bytes)}));
  }
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const std::shared_ptr<CompilerBackend> backend =
      WithReplayFiles(options.backend ? options.backend : LinkedCompiler(),
                      {.directory = DefaultReplayDir(options.cache_dir)});
  auto pool = std::make_shared<WorkerPool>(
      options.workers > 0 ? options.workers : cores,
      [&backend] { return std::make_unique<InProcessWorker>(backend); });
  return Engine::Create({.default_arch = options.arch}, std::move(store), backend, std::move(pool));
}

}  // namespace hackc::server
