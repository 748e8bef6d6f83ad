// SPDX-License-Identifier: MIT
// JSON that others wrote: what nlohmann::json reads without a word (a key given twice, of which the
// last wins; nesting and lists of any size) is an error here.
//
//   HACKC_ASSIGN_OR_RETURN(nlohmann::json config, ParseJson(text, {.bytes = 1 << 20}, "config"));
//
// Thread safety: a pure function of its arguments.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace hackc {

struct JsonLimits {
  size_t bytes = SIZE_MAX;     // of the text
  size_t depth = 32;           // of objects and arrays: the parsers behind this one recurse
  size_t elements = SIZE_MAX;  // of one array; 16 bytes of memory for each, for 2 of the text
};

// INVALID_ARGUMENT with what is wrong, behind the path of the value where it is one's:
// "a.b[2].c: given twice". Paths begin with `root`, the name of the document where it has one. A
// byte order mark at the start is passed over.
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text, const JsonLimits& limits = {},
                                         absl::string_view root = "");

}  // namespace hackc
