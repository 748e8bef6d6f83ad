// SPDX-License-Identifier: MIT
// Writes what a compile brought into a folder; runtime/program_files.h says what lies where.
//
//   HACKC_RETURN_IF_ERROR(WriteOutputFolder(result, "out"));
//
// Thread safety: one writer for a folder.
#pragma once

#include <filesystem>

#include "absl/status/status.h"
#include "client/cli/render.h"

namespace hackc::client {

absl::Status WriteOutputFolder(const CompileResult& result, const std::filesystem::path& directory);

}  // namespace hackc::client
