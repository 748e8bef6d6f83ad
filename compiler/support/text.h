// SPDX-License-Identifier: MIT
// Text between the standard library and Abseil. Debian's Abseil has a string_view type of its own,
// which neither converts to std::string_view nor back; interfaces use the standard one.
//
//   absl::StrCat("pass ", View(name))          // name is a std::string_view
//
// Thread safety: pure functions.
#pragma once

#include <string_view>

#include "absl/strings/string_view.h"

namespace hackc {

inline absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace hackc
