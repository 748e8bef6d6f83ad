// SPDX-License-Identifier: MIT
// Strict JSON: what a general parser lets pass but a person would want to hear about is refused (a
// key given twice, nesting or size without measure).
//
//   HACKC_ASSIGN_OR_RETURN(nlohmann::json config, ParseJsonObject(text, "config"));
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace hackc::frontend {

inline constexpr size_t kMaxJsonBytes = size_t{1} << 20;
inline constexpr int kMaxJsonDepth = 32;

// The object that `text` holds; errors are INVALID_ARGUMENT and start with `path`.
absl::StatusOr<nlohmann::json> ParseJsonObject(const std::string& text, const std::string& path);

// A value for an error message: compact JSON, at most 60 characters.
std::string ShortText(const nlohmann::json& value);

}  // namespace hackc::frontend
