// SPDX-License-Identifier: MIT
// Content addresses as the server writes them: "sha256:" and 64 lower-case hexadecimal digits.
//
//   HACKC_RETURN_IF_ERROR(VerifyDigest(kernel.digest(), cubin, "cubin of mlp_gate_up"));
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hackc::client {

std::string Sha256Digest(absl::string_view bytes);

bool IsDigest(absl::string_view text);

// DATA_LOSS naming `what` and both digests when the bytes are not those that `digest` promises.
absl::Status VerifyDigest(absl::string_view digest, absl::string_view bytes,
                          absl::string_view what);

}  // namespace hackc::client
