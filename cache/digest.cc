// SPDX-License-Identifier: MIT
#include "cache/digest.h"

#include <openssl/evp.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "compiler/support/internal_error.h"
#include "compiler/support/text.h"

namespace hackc::cache {

absl::StatusOr<Digest> Digest::Parse(std::string_view text) {
  constexpr std::string_view kPrefix = "sha256:";
  const std::string_view hex = text.substr(std::min(text.size(), kPrefix.size()));
  const bool good = text.starts_with(kPrefix) && hex.size() == 64 &&
                    std::all_of(hex.begin(), hex.end(), [](unsigned char c) {
                      return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
                    });
  if (!good) {
    return absl::InvalidArgumentError(
        absl::StrCat("digest: expected \"sha256:\" and 64 lower-case hex digits, got \"",
                     absl::CHexEscape(View(text.substr(0, 80))), "\" (", text.size(), " bytes)"));
  }
  return FromRaw(absl::HexStringToBytes(View(hex)));
}

absl::StatusOr<Digest> Digest::FromRaw(std::string_view raw) {
  Digest digest;
  if (raw.size() != digest.bytes.size()) {
    return absl::InvalidArgumentError(absl::StrCat("digest: expected 32 bytes, got ", raw.size()));
  }
  std::copy(raw.begin(), raw.end(), digest.bytes.begin());
  return digest;
}

std::string Digest::ToString() const {
  return absl::StrCat("sha256:", absl::BytesToHexString(View(raw())));
}

Digest Sha256(std::string_view bytes) {
  Digest digest;
  // Fails only where OpenSSL has no memory or no default provider.
  HACKC_CHECK(EVP_Digest(bytes.data(), bytes.size(), digest.bytes.data(), nullptr, EVP_sha256(),
                         nullptr) == 1)
      << "SHA-256 of " << bytes.size() << " bytes failed";
  return digest;
}

}  // namespace hackc::cache
