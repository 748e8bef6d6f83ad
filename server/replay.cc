// SPDX-License-Identifier: MIT
#include "server/replay.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache/digest.h"
#include "compiler/support/replay.h"

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

class Replaying : public CompilerBackend {
 public:
  Replaying(std::shared_ptr<CompilerBackend> backend, std::string directory)
      : backend_(std::move(backend)), directory_(std::move(directory)) {}

  absl::StatusOr<KeyFields> ProgramKeyFields(const CompileRequest& request) override {
    return backend_->ProgramKeyFields(request);
  }
  absl::StatusOr<Plan> PlanProgram(const CompileRequest& request) override {
    return Told(backend_->PlanProgram(request));
  }
  absl::StatusOr<CompiledKernel> CompileKernel(const KernelSource& source) override {
    return Told(backend_->CompileKernel(source));
  }
  absl::StatusOr<Reference> ReferenceKernel(const std::string& loop_text,
                                            const std::string& arch) override {
    return backend_->ReferenceKernel(loop_text, arch);
  }
  absl::StatusOr<Rates> TargetRates(const std::string& arch) override {
    return backend_->TargetRates(arch);
  }
  absl::StatusOr<std::string> NvrtcVersion() override { return backend_->NvrtcVersion(); }
  absl::StatusOr<std::vector<std::string>> SupportedArchs() override {
    return backend_->SupportedArchs();
  }

 private:
  template <typename T>
  absl::StatusOr<T> Told(absl::StatusOr<T> result) const {
    const std::optional<std::string> text =
        result.ok() ? std::nullopt : ReplayText(result.status());
    if (!text) return result;
    std::string message(result.status().message().substr(0, kMostMessageBytes));
    if (message.size() < result.status().message().size()) message += " [...]";
    const std::optional<std::string> path = WriteReplay(directory_, *text);
    absl::StrAppend(&message, path ? "\nto see it again: hackc-opt " : "\nno replay file in ",
                    path.value_or(directory_));
    return absl::Status(result.status().code(), message);
  }

  const std::shared_ptr<CompilerBackend> backend_;
  const std::string directory_;
};

}  // namespace

std::shared_ptr<CompilerBackend> WithReplayFiles(std::shared_ptr<CompilerBackend> backend,
                                                 std::string directory) {
  return std::make_shared<Replaying>(std::move(backend), std::move(directory));
}

std::string DefaultReplayDir(const std::string& cache_dir) {
  if (!cache_dir.empty()) return (fs::path(cache_dir) / "replay").string();
  std::error_code error;
  fs::path folder = fs::temp_directory_path(error);
  if (error) folder = "/tmp";
  return (folder / absl::StrCat("hackc-replay-", getuid())).string();
}

}  // namespace hackc::server
