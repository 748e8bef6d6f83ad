// SPDX-License-Identifier: MIT
// Matches a status by its code and a part of its message.
//
//   EXPECT_THAT(runtime->Run(call, stream), Fails(absl::StatusCode::kInvalidArgument, "seq = 65"));
//
// Thread safety: pure functions.
#pragma once

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"

namespace hackc::client {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& status) {
  return status.status();
}

MATCHER(Ok, "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

MATCHER_P2(Fails, code, part, "fails with the code and this in its message: " + std::string(part)) {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code &&
         std::string(StatusOf(arg).message()).find(part) != std::string::npos;
}

}  // namespace hackc::client
