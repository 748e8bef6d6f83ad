// SPDX-License-Identifier: MIT
#include "client/compiler_api.h"

#include "absl/strings/str_cat.h"
#include "client/runtime/digest.h"

namespace hackc::client {

absl::Status StreamVerifier::Check(const v1::CompileEvent& event) {
  if (event.has_kernel() && (with_cubins_ || !event.kernel().cubin().empty())) {
    return VerifyDigest(event.kernel().kernel().digest(), event.kernel().cubin(),
                        absl::StrCat("cubin of ", event.kernel().kernel().name()));
  }
  if (event.has_program()) {
    has_program_ = true;
    return VerifyDigest(event.program().digest(), event.program().bytes(), "program");
  }
  has_report_ |= event.has_report();
  return absl::OkStatus();
}

absl::Status StreamVerifier::Finish() const {
  if (has_program_ && has_report_) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("the answer ended without its ", has_program_ ? "report" : "program"));
}

}  // namespace hackc::client
