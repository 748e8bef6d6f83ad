// SPDX-License-Identifier: MIT
// A compiled program as a folder, written by `hackc-client submit --out DIR` and read by the
// runtime:
//
//   DIR/program.pb            the Program, bytes as hashed by the server
//   DIR/program.json          the same for people
//   DIR/KERNEL.cubin          machine code of each kernel
//   DIR/KERNEL/LEVEL.hir      its loop, tile and kernel IR; KERNEL/cuda.cu is the CUDA text
//   DIR/graph.hir, tensor.hir the whole model
//   DIR/report.json           what `submit --json` prints
//
//   HACKC_ASSIGN_OR_RETURN(ProgramFiles files, ReadProgramFolder("out"));
//   HACKC_ASSIGN_OR_RETURN(files, ParseProgram(program_bytes, cubins));   // as a server sent them
//
// Thread safety: plain values.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "hackc/v1/program.pb.h"

namespace hackc::client {

struct ProgramFiles {
  v1::Program program;
  std::vector<std::string> cubins;  // cubins[i] belongs to program.kernels(i)
};

// File names without extension, one for each kernel of the program: the kernel's name, followed by
// its index where two kernels share a name. INVALID_ARGUMENT for names that could leave the folder.
absl::StatusOr<std::vector<std::string>> KernelFileNames(const v1::Program& program);

// program.pb alone.
absl::StatusOr<v1::Program> ReadProgram(const std::filesystem::path& directory);

// DATA_LOSS when a cubin is not the one that the program names.
absl::StatusOr<ProgramFiles> ReadProgramFolder(const std::filesystem::path& directory);

// The same from memory, with the cubins in any order. NOT_FOUND names a kernel whose cubin is not
// there.
absl::StatusOr<ProgramFiles> ParseProgram(absl::string_view program,
                                          const std::vector<absl::string_view>& cubins);

}  // namespace hackc::client
