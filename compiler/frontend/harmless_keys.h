// SPDX-License-Identifier: MIT
// Config keys that do not change what a decoder computes from a prompt: tokens, training,
// generation defaults, bookkeeping. Whatever is neither read nor listed here is refused by the
// caller.
//
//   HACKC_ASSIGN_OR_RETURN(bool harmless, IsHarmless("use_cache", value, reader));
//
// Thread safety: constant data.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/frontend/config_reader.h"
#include "nlohmann/json.hpp"

namespace hackc::frontend {

// False: unknown. An error: known, but harmless at another value only.
absl::StatusOr<bool> IsHarmless(const std::string& key, const nlohmann::json& value,
                                const ConfigReader& reader);

}  // namespace hackc::frontend
