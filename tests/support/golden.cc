// SPDX-License-Identifier: MIT
#include "tests/support/golden.h"

#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace hackc::test {

const std::vector<std::string>& GoldenNames() {
  static const auto* names = new std::vector<std::string>{"llama",
                                                          "llama-mqa-bias",
                                                          "llama-tied",
                                                          "llama3-rope",
                                                          "llama-rope-linear",
                                                          "llama-rope-dynamic",
                                                          "llama-rope-yarn",
                                                          "qwen2",
                                                          "qwen2-tied",
                                                          "qwen2-sliding",
                                                          "qwen3",
                                                          "mistral"};
  return *names;
}

absl::StatusOr<golden::Model> LoadGolden(const std::string& name) {
  return golden::ReadModel(absl::StrCat(HACKC_SOURCE_DIR, "/tests/data/golden/", name));
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace hackc::test
