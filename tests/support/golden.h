// SPDX-License-Identifier: MIT
// The tiny models of tests/data/golden by name, and macros that tests of every level use.
//
//   ASSERT_OK(LoadGolden("llama"));
//   EXPECT_LE(Difference(logits, golden.expected.at("logits").values), golden::kTruthTolerance);
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/golden/model.h"

namespace hackc::test {

using golden::Difference;

// The folders of tests/data/golden in the order of their names. Each is a model that the front end
// must know.
const std::vector<std::string>& GoldenNames();
absl::StatusOr<golden::Model> LoadGolden(const std::string& name);

absl::StatusOr<std::string> ReadFile(const std::string& path);

inline const absl::Status& AsStatus(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& AsStatus(const absl::StatusOr<T>& result) {
  return result.status();
}

}  // namespace hackc::test

#define ASSERT_OK(expr)                                                      \
  do {                                                                       \
    const auto& hackc_result = (expr);                                       \
    ASSERT_TRUE(hackc_result.ok()) << ::hackc::test::AsStatus(hackc_result); \
  } while (false)
