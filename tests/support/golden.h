// SPDX-License-Identifier: MIT
// The tiny models of tests/data/golden with their true outputs, and the comparison that all levels share.
//
//   ASSIGN(golden, LoadGolden("llama"));
//   EXPECT_LE(Difference(logits, golden.expected.at("logits").values), kGoldenTolerance);
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/interp/run_inputs.h"
#include "tests/support/safetensors.h"

namespace hackc::test {

// transformers computes its rotary tables in float32, so float64 agrees to about 1e-6.
inline constexpr double kGoldenTolerance = 2e-6;

struct Golden {
  std::string config_json;
  Tensors weights;
  Tensors expected;  // see tests/data/golden/README.md

  // `weights` by name, for RunInputs; the golden must outlive it.
  std::function<absl::StatusOr<const interp::TensorData*>(const std::string&)> WeightsByName()
      const;
};

// Names of the golden models that the front end knows.
const std::vector<std::string>& GoldenNames();
absl::StatusOr<Golden> LoadGolden(const std::string& name);

// The larger of the relative Frobenius distance and the largest error relative to the largest true value;
// infinity when sizes differ or a value is not finite.
double Difference(const std::vector<double>& actual, const std::vector<double>& truth);

}  // namespace hackc::test

#define ASSERT_OK(expr)                                                      \
  do {                                                                       \
    const auto& hackc_result = (expr);                                       \
    ASSERT_TRUE(hackc_result.ok()) << ::hackc::test::AsStatus(hackc_result); \
  } while (false)

namespace hackc::test {
inline const absl::Status& AsStatus(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& AsStatus(const absl::StatusOr<T>& result) {
  return result.status();
}
}  // namespace hackc::test
