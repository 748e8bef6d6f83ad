// SPDX-License-Identifier: MIT
// The store on disk: one SQLite database in WAL mode, shared by any number of processes of one
// host.
//
//   HACKC_ASSIGN_OR_RETURN(std::unique_ptr<Store> store,
//                          OpenSqliteStore({.directory = "/var/cache/hackc"}));
//
// Errors name the path: PERMISSION_DENIED, RESOURCE_EXHAUSTED (disk full), UNAVAILABLE (locked for
// 5 s), else FAILED_PRECONDITION (not a directory, network file system, newer schema, another
// program's database). A file that is no sound database is moved aside, counted, and a new one
// begun; that also holds for damage met later, and for files that another process moved or removed
// under a running store.
//
// The limit covers all files at each moment, the write-ahead log included; one action may be about
// an eighth of it (at most 128 MiB). A commit survives a killed process; a power loss may take the
// last ones, never half. On 2 cores and an SSD: opening 1 ms, a new store 3 ms; reading an action
// and its 50 kB blob 0.1 ms, storing it 0.5 ms, 0.8 ms where others have to go for it.
//
// Safe from any thread. Not to be carried over fork().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cache/store.h"

namespace hackc::cache {

struct SqliteStoreOptions {
  std::string directory;
  int64_t limit_bytes = int64_t{10} << 30;
  // Told of damage that was found and dealt with; may be null. Called from any thread.
  std::function<void(const std::string& message)> warn;
};

absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const SqliteStoreOptions& options);

}  // namespace hackc::cache
