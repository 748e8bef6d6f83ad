// SPDX-License-Identifier: MIT
#include "server/message_channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"

namespace hackc::server {
namespace {

absl::Status SocketError(const char* what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// Waits for `events`; hang-ups and errors count as ready, the call that follows tells which.
absl::Status Wait(int fd, short events, Deadline deadline) {
  while (true) {
    int timeout = -1;
    if (deadline != kNoDeadline) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) return absl::DeadlineExceededError("time limit exceeded");
      timeout = static_cast<int>(std::min<int64_t>(left.count(), 60'000));
    }
    pollfd entry{fd, events, 0};
    const int ready = poll(&entry, 1, timeout);
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return SocketError("poll");
  }
}

absl::Status SendBytes(int fd, const char* data, size_t size, Deadline deadline) {
  while (size > 0) {
    const ssize_t sent = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      data += sent;
      size -= sent;
    } else if (errno == EAGAIN) {
      HACKC_RETURN_IF_ERROR(Wait(fd, POLLOUT, deadline));
    } else if (errno != EINTR) {
      return SocketError("send");
    }
  }
  return absl::OkStatus();
}

absl::Status ReceiveBytes(int fd, char* data, size_t size, Deadline deadline) {
  while (size > 0) {
    const ssize_t got = recv(fd, data, size, MSG_DONTWAIT);
    if (got > 0) {
      data += got;
      size -= got;
    } else if (got == 0) {
      return absl::UnavailableError("the other end closed the channel");
    } else if (errno == EAGAIN) {
      HACKC_RETURN_IF_ERROR(Wait(fd, POLLIN, deadline));
    } else if (errno != EINTR) {
      return SocketError("recv");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SendMessage(int fd, const google::protobuf::MessageLite& message, Deadline deadline) {
  const size_t size = message.ByteSizeLong();
  if (size > kMaxMessageBytes) {
    return absl::DataLossError(
        absl::StrCat("message of ", size, " bytes, limit ", kMaxMessageBytes));
  }
  std::string bytes;
  bytes.reserve(size + 4);
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(size >> shift));
  message.AppendToString(&bytes);
  return SendBytes(fd, bytes.data(), bytes.size(), deadline);
}

absl::Status ReceiveMessage(int fd, google::protobuf::MessageLite* message, Deadline deadline) {
  std::array<char, 4> prefix;
  HACKC_RETURN_IF_ERROR(ReceiveBytes(fd, prefix.data(), prefix.size(), deadline));
  size_t size = 0;
  for (int i = 0; i < 4; ++i) size |= size_t{static_cast<uint8_t>(prefix[i])} << (8 * i);
  if (size > kMaxMessageBytes) {
    return absl::DataLossError(
        absl::StrCat("message of ", size, " bytes, limit ", kMaxMessageBytes));
  }
  std::string bytes(size, '\0');
  HACKC_RETURN_IF_ERROR(ReceiveBytes(fd, bytes.data(), size, deadline));
  if (!message->ParseFromString(bytes)) return absl::DataLossError("bytes that are no message");
  return absl::OkStatus();
}

}  // namespace hackc::server
