// SPDX-License-Identifier: MIT
#include "cache/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/support/status_macros.h"
#include "compiler/support/text.h"

namespace hackc::cache {
namespace {

struct NetworkFileSystem {
  uint64_t type;
  const char* name;
};
// From linux/magic.h and the file systems' own sources; local ones are not listed. FUSE and 9p are
// left out: containers and virtual machines use them for local disks.
constexpr NetworkFileSystem kNetworkFileSystems[] = {
    {0x6969, "NFS"},        {0x517b, "SMB"},        {0xff534d42, "CIFS"},  {0xfe534d42, "SMB2"},
    {0x5346414f, "AFS"},    {0x6b414653, "AFS"},    {0x73757245, "Coda"},  {0x00c36400, "Ceph"},
    {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"},   {0x564c, "NCP"},       {0x7461636f, "OCFS2"},
    {0x01161970, "GFS2"},   {0x19830326, "BeeGFS"}, {0xaad7aaea, "PanFS"}, {0x20030528, "OrangeFS"},
};

absl::Status FromErrno(int code, const std::string& path, std::string_view what) {
  const std::string text =
      absl::StrCat("cache directory, ", path, ": ", View(what), ": ", std::strerror(code));
  switch (code) {
    case EACCES:
    case EPERM:
    case EROFS: return absl::PermissionDeniedError(text);
    case ENOSPC:
    case EDQUOT: return absl::ResourceExhaustedError(text);
    default: return absl::FailedPreconditionError(text);
  }
}

}  // namespace

absl::Status PrepareDirectory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return FromErrno(error.value(), path, "cannot be created");
  if (!std::filesystem::is_directory(path, error))
    return FromErrno(ENOTDIR, path, "cannot hold a store");
  struct statfs facts;
  if (statfs(path.c_str(), &facts) != 0) return FromErrno(errno, path, "statfs");
  return CheckFileSystemType(path, static_cast<uint32_t>(facts.f_type));
}

absl::Status CheckFileSystemType(const std::string& path, uint64_t type) {
  for (const NetworkFileSystem& network : kNetworkFileSystems) {
    if (network.type != type) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("cache directory, ", path, ": is on a network file system (", network.name,
                     "), where SQLite loses data; give a directory on a local disk"));
  }
  return absl::OkStatus();
}

absl::StatusOr<FileLock> FileLock::Acquire(const std::string& path, absl::Duration timeout) {
  FileLock lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (lock.fd_ < 0) return FromErrno(errno, path, "cannot be opened for writing");
  const absl::Time deadline = absl::Now() + timeout;
  while (flock(lock.fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return FromErrno(errno, path, "cannot be locked");
    if (absl::Now() >= deadline) {
      return absl::UnavailableError(absl::StrCat("cache directory, ", path,
                                                 ": another process has it locked for ",
                                                 absl::FormatDuration(timeout)));
    }
    absl::SleepFor(absl::Milliseconds(5));
  }
  return lock;
}

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace hackc::cache
