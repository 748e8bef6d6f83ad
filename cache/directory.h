// SPDX-License-Identifier: MIT
// Makes a directory ready to hold a store, or says why it cannot be.
//
//   HACKC_RETURN_IF_ERROR(PrepareDirectory("/var/cache/hackc"));
//
// Safe from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hackc::cache {

// Creates `path` with its parents and checks that it is a directory on a local file system. Each
// error names the path: PERMISSION_DENIED, RESOURCE_EXHAUSTED (no space), else FAILED_PRECONDITION.
absl::Status PrepareDirectory(const std::string& path);

// `type` is statfs's f_type. SQLite's write-ahead log is shared memory between the processes of one
// host, and network file systems neither share that memory nor lock dependably: a store there loses
// data.
absl::Status CheckFileSystemType(const std::string& path, uint64_t type);

// An exclusive lock among processes, on a file of its own, held until destruction. UNAVAILABLE if
// others hold it for all of `timeout`.
class FileLock {
 public:
  static absl::StatusOr<FileLock> Acquire(const std::string& path,
                                          absl::Duration timeout = absl::Seconds(5));
  FileLock(FileLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace hackc::cache
