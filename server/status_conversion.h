// SPDX-License-Identifier: MIT
// absl::Status to and from grpc::Status. The codes are the same numbers by design of both
// libraries. Thread safety: pure functions.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace hackc::server {

grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace hackc::server
