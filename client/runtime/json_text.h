// SPDX-License-Identifier: MIT
// JSON of files that others wrote: what nlohmann::json reads without a word (a key given twice, of
// which the last wins; nesting and lists of any size) is an error here.
//
//   HACKC_ASSIGN_OR_RETURN(nlohmann::json config, ParseJson(text, {/*depth=*/32}));
//
// Thread safety: a pure function of its arguments.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace hackc::client {

struct JsonLimits {
  int depth = 32;              // of objects and arrays; the parsers behind this one recurse
  size_t elements = SIZE_MAX;  // of one array; 16 bytes of memory for each, for 2 of the text
};

// INVALID_ARGUMENT with what is wrong, and the path of the key where it is one: "a.b.c is given
// twice". A byte order mark at the start is passed over.
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text, const JsonLimits& limits = {});

}  // namespace hackc::client
