// SPDX-License-Identifier: MIT
// Protobuf messages over a stream socket, each behind its length as 4 little-endian bytes.
//
//   RETURN_IF_ERROR(SendMessage(fd, request, deadline));
//   RETURN_IF_ERROR(ReceiveMessage(fd, &reply, deadline));
//
// Errors: UNAVAILABLE when the other end is gone, DEADLINE_EXCEEDED, DATA_LOSS for a length above
// kMaxMessageBytes or bytes that do not parse. After an error the stream is of no more use.
// Thread safety: one sender and one receiver at a time.
#pragma once

#include <google/protobuf/message_lite.h>

#include <chrono>
#include <cstddef>

#include "absl/status/status.h"

namespace hackc::server {

using Deadline = std::chrono::steady_clock::time_point;
inline constexpr Deadline kNoDeadline = Deadline::max();

inline constexpr size_t kMaxMessageBytes = size_t{64} << 20;

absl::Status SendMessage(int fd, const google::protobuf::MessageLite& message, Deadline deadline);
absl::Status ReceiveMessage(int fd, google::protobuf::MessageLite* message, Deadline deadline);

}  // namespace hackc::server
