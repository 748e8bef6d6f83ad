// SPDX-License-Identifier: MIT
// Joins strings, characters and numbers into one string. The installed Abseil has its own
// string_view type and its StrCat refuses std::string_view; this one takes it.
//
//   Cat("index rank ", indices.size(), ", buffer rank ", rank)
//
// Thread safety: pure functions.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <type_traits>

namespace hackc {

template <typename T>
void AppendTo(std::string& out, const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    out += std::string_view(value);
  } else if constexpr (std::is_same_v<T, char>) {
    out += value;
  } else if constexpr (std::is_same_v<T, bool>) {
    out += value ? "true" : "false";
  } else {
    static_assert(std::is_arithmetic_v<T>, "Cat takes strings, characters and numbers");
    char buffer[40];
    out.append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
  }
}

std::string Cat(const auto&... values) {
  std::string out;
  (AppendTo(out, values), ...);
  return out;
}

}  // namespace hackc
