// SPDX-License-Identifier: MIT
#include "client/runtime/program_files.h"

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/runtime/digest.h"
#include "client/runtime/files.h"
#include "compiler/support/status_macros.h"

namespace hackc::client {
namespace {

// Rotary tables and the like are constants inside the program; cubins reach some MB.
constexpr size_t kMaxProgramBytes = 512u << 20;
constexpr size_t kMaxCubinBytes = 256u << 20;

bool IsFileName(const std::string& name) {
  return !name.empty() && name.size() <= 128 && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
         });
}

absl::Status Parse(absl::string_view bytes, const std::string& origin, v1::Program* program) {
  // libprotobuf would print what it finds wrong, in the process of whoever loads libhackc.so.
  google::protobuf::LogSilencer silent;
  if (bytes.size() <= kMaxProgramBytes &&
      program->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(origin, ": not a serialised Program"));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> KernelFileNames(const v1::Program& program) {
  std::map<std::string, int> uses;
  for (const v1::Kernel& kernel : program.kernels()) ++uses[kernel.name()];
  std::vector<std::string> names;
  for (int i = 0; i < program.kernels_size(); ++i) {
    const std::string& name = program.kernels(i).name();
    if (!IsFileName(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("program.kernels[", i,
                       "].name: expected letters, digits, '_', '-' and '.', got '", name, "'"));
    }
    names.push_back(uses[name] == 1 ? name : absl::StrCat(name, ".", i));
  }
  return names;
}

absl::StatusOr<v1::Program> ReadProgram(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "program.pb";
  HACKC_ASSIGN_OR_RETURN(std::string bytes, ReadFile(path, kMaxProgramBytes));
  v1::Program program;
  HACKC_RETURN_IF_ERROR(Parse(bytes, path.string(), &program));
  return program;
}

absl::StatusOr<ProgramFiles> ReadProgramFolder(const std::filesystem::path& directory) {
  ProgramFiles files;
  HACKC_ASSIGN_OR_RETURN(files.program, ReadProgram(directory));
  HACKC_ASSIGN_OR_RETURN(std::vector<std::string> names, KernelFileNames(files.program));
  for (int i = 0; i < files.program.kernels_size(); ++i) {
    std::filesystem::path path = directory / absl::StrCat(names[i], ".cubin");
    HACKC_ASSIGN_OR_RETURN(std::string cubin, ReadFile(path, kMaxCubinBytes));
    HACKC_RETURN_IF_ERROR(VerifyDigest(files.program.kernels(i).digest(), cubin, path.string()));
    files.cubins.push_back(std::move(cubin));
  }
  return files;
}

absl::StatusOr<ProgramFiles> ParseProgram(absl::string_view program,
                                          const std::vector<absl::string_view>& cubins) {
  ProgramFiles files;
  HACKC_RETURN_IF_ERROR(Parse(program, "program", &files.program));
  std::map<std::string, absl::string_view> by_digest;
  for (absl::string_view cubin : cubins) by_digest[Sha256Digest(cubin)] = cubin;
  for (const v1::Kernel& kernel : files.program.kernels()) {
    auto found = by_digest.find(kernel.digest());
    if (found == by_digest.end()) {
      return absl::NotFoundError(absl::StrCat(
          "kernel ", kernel.name(), ": none of the cubins has the digest ", kernel.digest()));
    }
    files.cubins.emplace_back(found->second);
  }
  return files;
}

}  // namespace hackc::client
