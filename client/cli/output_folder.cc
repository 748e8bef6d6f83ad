// SPDX-License-Identifier: MIT
#include "client/cli/output_folder.h"

#include <google/protobuf/util/json_util.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/runtime/files.h"
#include "client/runtime/program_files.h"
#include "compiler/support/status_macros.h"

namespace hackc::client {
namespace {

// The six IRs are the only files with names from the stream.
const std::set<std::string>& Levels() {
  static const auto* levels =
      new std::set<std::string>{"graph", "tensor", "loop", "tile", "kernel", "cuda"};
  return *levels;
}

std::string TextFile(const std::string& level) {
  return absl::StrCat(level, level == "cuda" ? ".cu" : ".hir");
}

absl::Status WriteTexts(const google::protobuf::Map<std::string, std::string>& texts,
                        const std::filesystem::path& folder) {
  for (const auto& [level, text] : texts) {
    if (!Levels().count(level)) {
      return absl::InternalError(absl::StrCat("the answer has an unknown IR level '", level, "'"));
    }
    HACKC_RETURN_IF_ERROR(WriteFile(folder / TextFile(level), text));
  }
  return absl::OkStatus();
}

// What a submit or Program.save wrote there before, program.pb first; nothing else.
absl::Status RemoveProgram(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> gone = {"program.pb", "program.json", "report.json"};
  auto add_texts = [&](const std::filesystem::path& folder) {
    for (const std::string& level : Levels()) gone.push_back(folder / TextFile(level));
  };
  absl::StatusOr<v1::Program> program = ReadProgram(directory);
  if (absl::IsNotFound(program.status())) return absl::OkStatus();
  absl::StatusOr<std::vector<std::string>> names = std::vector<std::string>();
  if (program.ok()) names = KernelFileNames(*program);
  add_texts("");
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    gone.push_back(name + ".cubin");
    add_texts(name);
    if (std::filesystem::is_directory(directory / name)) gone.push_back(name);  // where it is empty
  }
  for (const std::filesystem::path& file : gone) {
    std::error_code error;
    std::filesystem::remove(directory / file, error);
    if (error && error != std::errc::directory_not_empty && error != std::errc::not_a_directory) {
      return absl::ErrnoToStatus(error.value(),
                                 absl::StrCat((directory / file).string(), ": cannot remove"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteOutputFolder(const CompileResult& result,
                               const std::filesystem::path& directory) {
  const v1::Program& program = result.program.program();
  HACKC_ASSIGN_OR_RETURN(std::vector<std::string> names, KernelFileNames(program));
  HACKC_RETURN_IF_ERROR(RemoveProgram(directory));
  std::map<std::string, const v1::KernelReady*> by_digest;
  std::map<std::string, const v1::KernelReady*> by_key;
  for (const v1::KernelReady& ready : result.kernels) {
    by_digest.emplace(ready.kernel().digest(), &ready);
    by_key.emplace(ready.kernel().key(), &ready);
  }
  for (int i = 0; i < program.kernels_size(); ++i) {
    auto cubin = by_digest.find(program.kernels(i).digest());
    if (cubin == by_digest.end()) {
      return absl::InternalError(absl::StrCat("the answer has no cubin of kernel ", names[i]));
    }
    HACKC_RETURN_IF_ERROR(
        WriteFile(directory / absl::StrCat(names[i], ".cubin"), cubin->second->cubin()));
    if (auto ready = by_key.find(program.kernels(i).key()); ready != by_key.end()) {
      HACKC_RETURN_IF_ERROR(WriteTexts(ready->second->ir(), directory / names[i]));
    }
  }
  HACKC_RETURN_IF_ERROR(WriteTexts(result.report.ir(), directory));
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(program, &json, options).ok()) {
    return absl::InternalError("the program has no JSON form");
  }
  HACKC_RETURN_IF_ERROR(WriteFile(directory / "program.json", json));
  HACKC_RETURN_IF_ERROR(WriteFile(directory / "report.json", ResultJson(result)));
  // Last, so that a folder with a program.pb is complete.
  return WriteFileAtOnce(directory / "program.pb", result.program.bytes());
}

}  // namespace hackc::client
