// SPDX-License-Identifier: MIT
#include "client/runtime/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"

namespace hackc::client {

namespace fs = std::filesystem;

absl::StatusOr<std::string> ReadFile(const fs::path& path, size_t max_bytes) {
  std::error_code error;
  fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    return absl::NotFoundError(absl::StrCat(path.string(), ": no such file"));
  }
  if (!error && !fs::is_regular_file(status)) {
    return absl::InvalidArgumentError(absl::StrCat(path.string(), ": not a regular file"));
  }
  errno = 0;
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr)
    return absl::ErrnoToStatus(errno, absl::StrCat(path.string(), ": cannot open"));
  std::string bytes;
  char chunk[1 << 16];
  // The size is judged while reading: a file's stated size may be 0 (pipes, /proc) or change.
  while (size_t count = std::fread(chunk, 1, sizeof(chunk), file.get())) {
    bytes.append(chunk, count);
    if (bytes.size() > max_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(path.string(), ": larger than the limit of ", max_bytes, " bytes"));
    }
  }
  if (std::ferror(file.get())) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path.string(), ": cannot read"));
  }
  return bytes;
}

absl::Status MakeFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat(folder.string(), ": cannot create the folder"));
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(folder.string(), ": cannot write there"));
  }
  return absl::OkStatus();
}

absl::Status WriteFileAtOnce(const fs::path& path, absl::string_view bytes) {
  fs::path beside = path;
  beside += ".new";
  HACKC_RETURN_IF_ERROR(WriteFile(beside, bytes));
  std::error_code error;
  fs::rename(beside, path, error);
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(error.value(), absl::StrCat(path.string(), ": cannot create"));
}

absl::Status WriteFile(const fs::path& path, absl::string_view bytes) {
  if (path.has_parent_path()) HACKC_RETURN_IF_ERROR(MakeFolder(path.parent_path()));
  errno = 0;
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "wb"), &std::fclose);
  if (file == nullptr)
    return absl::ErrnoToStatus(errno, absl::StrCat(path.string(), ": cannot create"));
  bool written = std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
  written = std::fclose(file.release()) == 0 && written;
  if (!written) return absl::ErrnoToStatus(errno, absl::StrCat(path.string(), ": cannot write"));
  return absl::OkStatus();
}

}  // namespace hackc::client
