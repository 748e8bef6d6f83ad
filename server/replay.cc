// SPDX-License-Identifier: MIT
#include "server/replay.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache/digest.h"
#include "compiler/support/replay.h"
#include "compiler/support/status_macros.h"
#include "server/convert.h"

namespace hackc::server {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = 32;
// A message travels in a header of gRPC, which cuts it at 2048 bytes; the path must survive.
constexpr size_t kMostMessageBytes = 1200;

void KeepNewest(const fs::path& directory) {
  std::error_code error;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (entry.path().extension() != ".hir") continue;
    const auto time = entry.last_write_time(error);
    if (!error) files.emplace_back(time, entry.path());
  }
  std::sort(files.begin(), files.end());
  for (size_t i = 0; i + kMostFiles < files.size(); ++i) fs::remove(files[i].second, error);
}

// The file's path, or nothing when it cannot be written.
std::optional<std::string> WriteReplay(const fs::path& directory, const std::string& text) {
  std::error_code error;
  fs::create_directories(directory, error);
  const std::string name = cache::Sha256(text).ToString().substr(7, 16);
  const fs::path path = directory / (name + ".hir");
  const fs::path temporary = directory / absl::StrCat(name, ".", getpid(), ".new");
  std::ofstream file(temporary, std::ios::binary);
  file << text;
  file.close();
  if (file) fs::rename(temporary, path, error);  // whoever looks sees a whole file
  if (!file || error) {
    fs::remove(temporary, error);
    return std::nullopt;
  }
  KeepNewest(directory);
  return path.string();
}

// ---- calls as hackc-opt reads them (tools/opt/case_file.h) ----
std::string CallText(const CompileRequest& request) {
  static constexpr const char* kDTypes[] = {"", "float32", "bfloat16", "float16"};
  std::string line = absl::StrCat("# pass: program  target: ", request.arch);
  const auto dtype = static_cast<size_t>(request.dtype);
  if (dtype > 0 && dtype < std::size(kDTypes)) absl::StrAppend(&line, "  dtype: ", kDTypes[dtype]);
  const auto add_range = [&](const char* name, const frontend::ShapeRange& range) {
    absl::StrAppend(&line, "  ", name, ": ", range.min, "..", range.max);
  };
  add_range("batch", request.batch);
  add_range("seq", request.seq);
  add_range("past", request.past);
  if (request.page_size != 0) absl::StrAppend(&line, "  page_size: ", request.page_size);
  if (request.layers != 0) absl::StrAppend(&line, "  layers: ", request.layers);
  if (request.last_logits) line += "  last_logits: yes";
  return absl::StrCat(line, "\n", request.config_json, "\n");
}

std::string NvrtcText(const std::string& arch, const std::string& entry, const std::string& cuda) {
  return absl::StrCat("# pass: nvrtc  target: ", arch, "  entry: ", entry, "\n", cuda);
}

std::string ReferenceText(const std::string& arch, const std::string& loop_text) {
  return absl::StrCat("# pass: reference  target: ", arch, "\n", loop_text);
}

absl::StatusOr<std::string> CallText(const v1::worker::Request& request) {
  if (request.has_plan()) {
    HACKC_ASSIGN_OR_RETURN(const CompileRequest call, RequestFromProto(request.plan()));
    return CallText(call);
  }
  if (request.has_kernel()) {
    const v1::Kernel& kernel = request.kernel().kernel();
    return NvrtcText(kernel.arch(), kernel.entry(), request.kernel().cuda());
  }
  if (request.has_reference()) {
    return ReferenceText(request.reference().arch(), request.reference().loop());
  }
  return absl::NotFoundError("nothing is compiled");
}

absl::Status Leave(const absl::Status& status, const std::string& text,
                   const ReplayOptions& options) {
  std::string message(status.message().substr(0, kMostMessageBytes));
  if (message.size() < status.message().size()) message += " [...]";
  const std::optional<std::string> path = WriteReplay(options.directory, text);
  if (!path) {
    absl::StrAppend(&message, "\nno replay file in ", options.directory);
  } else {
    absl::StrAppend(&message, "\nto see it again: hackc-opt ",
                    options.pass_plugin.empty() ? "" : "--pass-plugin ", options.pass_plugin,
                    options.pass_plugin.empty() ? "" : " ", *path);
  }
  return absl::Status(status.code(), message);
}

class Replaying : public CompilerBackend {
 public:
  Replaying(std::shared_ptr<CompilerBackend> backend, ReplayOptions options)
      : backend_(std::move(backend)), options_(std::move(options)) {}

  absl::StatusOr<KeyFields> ProgramKeyFields(const CompileRequest& request) override {
    return Told([&] { return backend_->ProgramKeyFields(request); },
                [&] { return CallText(request); });
  }
  absl::StatusOr<Plan> PlanProgram(const CompileRequest& request) override {
    return Told([&] { return backend_->PlanProgram(request); }, [&] { return CallText(request); });
  }
  absl::StatusOr<CompiledKernel> CompileKernel(const KernelSource& source) override {
    return Told([&] { return backend_->CompileKernel(source); },
                [&] { return NvrtcText(source.kernel.arch, source.kernel.entry, source.cuda); });
  }
  absl::StatusOr<Reference> ReferenceKernel(const std::string& loop_text,
                                            const std::string& arch) override {
    return Told([&] { return backend_->ReferenceKernel(loop_text, arch); },
                [&] { return ReferenceText(arch, loop_text); });
  }
  absl::StatusOr<Rates> TargetRates(const std::string& arch) override {
    return backend_->TargetRates(arch);
  }
  absl::StatusOr<std::string> NvrtcVersion() override { return backend_->NvrtcVersion(); }
  absl::StatusOr<std::vector<std::string>> SupportedArchs() override {
    return backend_->SupportedArchs();
  }

 private:
  template <typename Work, typename Text>
  auto Told(Work&& work, Text&& call_text) const -> decltype(work()) {
    absl::Status status;
    try {
      auto result = work();
      if (!absl::IsInternal(result.status())) return result;
      status = result.status();
    } catch (const std::exception& error) {
      status = absl::InternalError(error.what());
    }
    const std::optional<std::string> told = ReplayText(status);
    return Leave(status, told ? *told : call_text(), options_);
  }

  const std::shared_ptr<CompilerBackend> backend_;
  const ReplayOptions options_;
};

}  // namespace

std::shared_ptr<CompilerBackend> WithReplayFiles(std::shared_ptr<CompilerBackend> backend,
                                                 ReplayOptions options) {
  return std::make_shared<Replaying>(std::move(backend), std::move(options));
}

absl::Status LeaveReplay(const absl::Status& status, const v1::worker::Request& request,
                         const ReplayOptions& options) {
  const absl::StatusOr<std::string> text = CallText(request);
  return text.ok() ? Leave(status, *text, options) : status;
}

std::string DefaultReplayDir(const std::string& cache_dir) {
  if (!cache_dir.empty()) return (fs::path(cache_dir) / "replay").string();
  std::error_code error;
  fs::path folder = fs::temp_directory_path(error);
  if (error) folder = "/tmp";
  return (folder / absl::StrCat("hackc-replay-", getuid())).string();
}

}  // namespace hackc::server
