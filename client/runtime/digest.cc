// SPDX-License-Identifier: MIT
#include "client/runtime/digest.h"

#include <openssl/sha.h>

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hackc::client {
namespace {
constexpr absl::string_view kPrefix = "sha256:";
}

std::string Sha256Digest(absl::string_view bytes) {
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), hash);
  return absl::StrCat(kPrefix,
                      absl::BytesToHexString({reinterpret_cast<const char*>(hash), sizeof(hash)}));
}

bool IsDigest(absl::string_view text) {
  if (!absl::StartsWith(text, kPrefix)) return false;
  text.remove_prefix(kPrefix.size());
  return text.size() == 2 * SHA256_DIGEST_LENGTH &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

absl::Status VerifyDigest(absl::string_view digest, absl::string_view bytes,
                          absl::string_view what) {
  std::string got = Sha256Digest(bytes);
  if (got == digest) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(what, ": ", bytes.size(), " bytes have the digest ", got,
                                          ", expected ", digest.empty() ? "one" : digest));
}

}  // namespace hackc::client
