// SPDX-License-Identifier: MIT
// Whole files in and out, with the reason of a failure in the status.
//
//   HACKC_ASSIGN_OR_RETURN(std::string bytes,
//                          ReadFile(directory / "program.pb", kMaxProgramBytes));
//
// Thread safety: pure functions of their arguments and the file system.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hackc::client {

// INVALID_ARGUMENT when the file is larger than `max_bytes` or is not a regular file.
absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path, size_t max_bytes);

// Makes a folder and those that it lies in, unless it is there and can be written.
absl::Status MakeFolder(const std::filesystem::path& folder);

// Creates missing folders on the way.
absl::Status WriteFile(const std::filesystem::path& path, absl::string_view bytes);

// The same through a file beside it: whoever looks sees all of it or nothing.
absl::Status WriteFileAtOnce(const std::filesystem::path& path, absl::string_view bytes);

}  // namespace hackc::client
