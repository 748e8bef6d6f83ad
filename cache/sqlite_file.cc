// SPDX-License-Identifier: MIT
#include "cache/sqlite_file.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "cache/directory.h"
#include "cache/sqlite_schema.h"

namespace hackc::cache {
namespace {

constexpr int64_t kMinimumLogBytes = int64_t{1} << 20;
constexpr int64_t kMaximumLogBytes = int64_t{256} << 20;

int64_t FileBytes(const std::string& path) {
  struct stat facts;
  return stat(path.c_str(), &facts) == 0 ? facts.st_size : 0;
}

std::string LogOf(const std::string& path) { return path + "-wal"; }
std::string IndexOf(const std::string& path) { return path + "-shm"; }
std::string AsideOf(const std::string& path) { return path + ".corrupt"; }

int64_t AsideBytes(const std::string& path) {
  return FileBytes(AsideOf(path)) + FileBytes(LogOf(AsideOf(path)));
}

// The log's index has 32 KiB for each 4096 frames of the log.
int64_t MaximumIndexBytes(int64_t log_bytes) { return (64 << 10) + log_bytes / 256; }

}  // namespace

StoreFile::StoreFile(std::string directory, int64_t limit_bytes)
    : directory_(std::move(directory)),
      path_(directory_ + "/store.db"),
      limit_bytes_(limit_bytes),
      max_log_bytes_(std::clamp(limit_bytes / 4, kMinimumLogBytes, kMaximumLogBytes)) {}

absl::StatusOr<Connections> StoreFile::Open(Connections old, bool damaged) const {
  if (limit_bytes_ < kMinimumLimit) {
    return absl::InvalidArgumentError(absl::StrCat("cache limit: expected at least ", kMinimumLimit,
                                                   " bytes, got ", limit_bytes_));
  }
  HACKC_RETURN_IF_ERROR(PrepareDirectory(directory_));
  HACKC_ASSIGN_OR_RETURN(FileLock lock, FileLock::Acquire(directory_ + "/store.lock"));
  // Asked while the old file is still open: once closed, its inode number may name another file.
  const bool move_aside = damaged && IsCurrent(old);
  old = Connections();
  if (move_aside) HACKC_RETURN_IF_ERROR(MoveAside());
  int moved_aside = move_aside ? 1 : 0;
  absl::StatusOr<Connections> opened = TryOpen();
  if (absl::IsDataLoss(opened.status())) {
    HACKC_RETURN_IF_ERROR(MoveAside());
    ++moved_aside;
    opened = TryOpen();
  }
  if (opened.ok()) opened->moved_aside = moved_aside;
  return opened;
}

absl::StatusOr<Connections> StoreFile::TryOpen() const {
  Connections connections;
  HACKC_ASSIGN_OR_RETURN(connections.writer, Database::Open(path_));
  HACKC_RETURN_IF_ERROR(MigrateSchema(*connections.writer, SchemaSteps()));
  HACKC_ASSIGN_OR_RETURN(connections.reader, Database::Open(path_));
  struct stat facts;
  if (stat(path_.c_str(), &facts) != 0) {
    return absl::UnavailableError(absl::StrCat(path_, ": ", std::strerror(errno)));
  }
  connections.device = facts.st_dev;
  connections.inode = facts.st_ino;
  connections.max_pages =
      (limit_bytes_ - max_log_bytes_ - MaximumIndexBytes(max_log_bytes_) - AsideBytes(path_)) /
      kPageBytes;
  HACKC_RETURN_IF_ERROR(connections.writer->RunScript(
      absl::StrCat("PRAGMA max_page_count = ", connections.max_pages)));
  return connections;
}

bool StoreFile::IsCurrent(const Connections& connections) const {
  struct stat facts;
  return connections.writer != nullptr && stat(path_.c_str(), &facts) == 0 &&
         facts.st_dev == connections.device && facts.st_ino == connections.inode;
}

// The last damaged file is kept for a person to look at, unless it would take a large part of the
// limit. The index is unlinked: processes that have it mapped keep it, and a new database must not
// meet it.
absl::Status StoreFile::MoveAside() const {
  const std::string aside = AsideOf(path_);
  unlink(LogOf(aside).c_str());
  if (rename(path_.c_str(), aside.c_str()) != 0 && errno != ENOENT) {
    return absl::FailedPreconditionError(absl::StrCat(path_, ": is damaged and cannot be moved to ",
                                                      aside, ": ", std::strerror(errno)));
  }
  rename(LogOf(path_).c_str(), LogOf(aside).c_str());
  unlink(IndexOf(path_).c_str());
  if (AsideBytes(path_) > limit_bytes_ / 4) {
    unlink(aside.c_str());
    unlink(LogOf(aside).c_str());
  }
  return absl::OkStatus();
}

int64_t StoreFile::LogBytes() const { return FileBytes(LogOf(path_)); }

int64_t StoreFile::TotalBytes() const {
  return FileBytes(path_) + LogBytes() + FileBytes(IndexOf(path_)) + AsideBytes(path_);
}

}  // namespace hackc::cache
