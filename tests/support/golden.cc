// SPDX-License-Identifier: MIT
#include "tests/support/golden.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace hackc::test {

namespace {

const std::filesystem::path& GoldenFolder() {
  static const auto* path = new std::filesystem::path(HACKC_SOURCE_DIR "/tests/data/golden");
  return *path;
}

}  // namespace

const std::vector<std::string>& GoldenNames() {
  static const auto* sorted = [] {
    auto* names = new std::vector<std::string>;
    for (const auto& entry : std::filesystem::directory_iterator(GoldenFolder())) {
      if (exists(entry.path() / "config.json")) names->push_back(entry.path().filename().string());
    }
    std::sort(names->begin(), names->end());
    return names;
  }();
  return *sorted;
}

absl::StatusOr<golden::Model> LoadGolden(const std::string& name) {
  return golden::ReadModel((GoldenFolder() / name).string());
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace hackc::test
