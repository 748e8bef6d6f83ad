// SPDX-License-Identifier: MIT
#include "tests/support/golden.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"

namespace hackc::test {

std::function<absl::StatusOr<const interp::TensorData*>(const std::string&)> Golden::WeightsByName()
    const {
  return [this](const std::string& name) -> absl::StatusOr<const interp::TensorData*> {
    const auto found = weights.find(name);
    if (found == weights.end()) return absl::NotFoundError(absl::StrCat("no weight ", name));
    return &found->second;
  };
}

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

absl::StatusOr<Golden> LoadGolden(const std::string& name) {
  const std::string folder = absl::StrCat(HACKC_SOURCE_DIR, "/tests/data/golden/", name, "/");
  Golden golden;
  HACKC_ASSIGN_OR_RETURN(golden.config_json, ReadFile(folder + "config.json"));
  HACKC_ASSIGN_OR_RETURN(golden.weights, ReadSafetensors(folder + "model.safetensors"));
  HACKC_ASSIGN_OR_RETURN(golden.expected, ReadSafetensors(folder + "expected.safetensors"));
  return golden;
}

double Difference(const std::vector<double>& actual, const std::vector<double>& truth) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (actual.size() != truth.size() || truth.empty()) return kInfinity;
  double squares = 0, true_squares = 0, largest = 0, true_largest = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    const double error = actual[i] - truth[i];
    if (!std::isfinite(error)) return kInfinity;
    squares += error * error;
    true_squares += truth[i] * truth[i];
    largest = std::max(largest, std::abs(error));
    true_largest = std::max(true_largest, std::abs(truth[i]));
  }
  return std::max(std::sqrt(squares / true_squares), largest / true_largest);
}

}  // namespace hackc::test
