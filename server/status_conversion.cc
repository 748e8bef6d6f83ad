// SPDX-License-Identifier: MIT
#include "server/status_conversion.h"

#include <string>
#include <string_view>

namespace hackc::server {
namespace {

// Messages travel in an HTTP/2 header; gRPC's default limit for all headers is 8 KiB,
// percent-encoded.
constexpr size_t kMaxMessageBytes = 2048;

static_assert(static_cast<int>(absl::StatusCode::kInvalidArgument) == grpc::INVALID_ARGUMENT);
static_assert(static_cast<int>(absl::StatusCode::kResourceExhausted) == grpc::RESOURCE_EXHAUSTED);
static_assert(static_cast<int>(absl::StatusCode::kUnauthenticated) == grpc::UNAUTHENTICATED);

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string message(status.message().substr(0, kMaxMessageBytes));
  if (status.message().size() > kMaxMessageBytes) message += " [...]";
  return grpc::Status(static_cast<grpc::StatusCode>(status.raw_code()), message);
}

absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace hackc::server
