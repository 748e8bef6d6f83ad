// SPDX-License-Identifier: MIT
// The files of a SQLite store: opening them, finding out that they are damaged or no longer there,
// and how many bytes each may have.
//
//   StoreFile file(directory, limit_bytes);
//   HACKC_ASSIGN_OR_RETURN(Connections connections, file.Open({}, false));
//
// In the directory: store.db, store.db-wal, store.db-shm (SQLite's), store.lock (held while one
// process opens or replaces the others) and, after damage, store.db.corrupt with its log.
//
// The limit covers them all, at each moment. The log may have `max_log_bytes()`; the database may
// have `max_pages`, which SQLite itself enforces; together with the log's index and what was moved
// aside they make the limit. Const after construction, apart from the files themselves; safe from
// any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cache/database.h"

namespace hackc::cache {

struct Connections {
  std::unique_ptr<Database> writer;
  std::unique_ptr<Database>
      reader;        // of its own, so that reads do not wait for a write or a checkpoint
  dev_t device = 0;  // with the inode: which file at that path
  ino_t inode = 0;
  int64_t max_pages = 0;
  int moved_aside = 0;  // files that opening found to be damaged
};

class StoreFile {
 public:
  static constexpr int64_t kPageBytes = 4096;
  static constexpr int64_t kLogPageBytes = kPageBytes + 24;  // a page's frame in the log
  static constexpr int64_t kMinimumLimit = int64_t{4} << 20;

  StoreFile(std::string directory, int64_t limit_bytes);

  // Opens, creates or migrates. `old` is closed first. If it was found `damaged` and still is what
  // lies in the directory, that is moved aside, and so is what turns out to be no database.
  absl::StatusOr<Connections> Open(Connections old, bool damaged) const;

  // Whether the connections' file is still the one in the directory: another process may have moved
  // it aside, or a person removed it.
  bool IsCurrent(const Connections& connections) const;

  int64_t LogBytes() const;
  int64_t TotalBytes() const;
  int64_t limit_bytes() const { return limit_bytes_; }
  int64_t max_log_bytes() const { return max_log_bytes_; }
  const std::string& path() const { return path_; }

 private:
  absl::StatusOr<Connections> TryOpen() const;
  absl::Status MoveAside() const;

  const std::string directory_;
  const std::string path_;
  const int64_t limit_bytes_;
  const int64_t max_log_bytes_;
};

}  // namespace hackc::cache
