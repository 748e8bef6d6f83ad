// SPDX-License-Identifier: MIT
// The address of bytes: their SHA-256, printed `sha256:<64 lower-case hex digits>`, the one
// spelling that Parse accepts.
//
//   Digest digest = Sha256(cubin);
//   absl::StatusOr<Digest> same = Digest::Parse(digest.ToString());
//
// A value type: copies are independent, const access is safe from any thread.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hackc::cache {

struct Digest {
  std::array<uint8_t, 32> bytes{};

  static absl::StatusOr<Digest> Parse(std::string_view text);
  // `raw` is the 32 bytes themselves, as a store's column holds them.
  static absl::StatusOr<Digest> FromRaw(std::string_view raw);
  std::string ToString() const;
  std::string_view raw() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  friend auto operator<=>(const Digest&, const Digest&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const Digest& digest) {
    return H::combine(std::move(state), digest.bytes);
  }
};

Digest Sha256(std::string_view bytes);

}  // namespace hackc::cache
