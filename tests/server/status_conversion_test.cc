// SPDX-License-Identifier: MIT
#include "server/status_conversion.h"

#include <gtest/gtest.h>

namespace hackc::server {
namespace {

TEST(StatusConversion, EveryCodeAndItsMessageGoThereAndBack) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "model.config.x: what");
    EXPECT_EQ(ToGrpc(status).error_code(), code);
    EXPECT_EQ(FromGrpc(ToGrpc(status)), status);
  }
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpc(grpc::Status::OK).ok());
}

// A compiler's log can be longer than the header that carries a status.
TEST(StatusConversion, LongMessagesAreCut) {
  const grpc::Status status = ToGrpc(absl::InternalError(std::string(100'000, 'x')));
  EXPECT_EQ(status.error_message(), std::string(2048, 'x') + " [...]");
}

}  // namespace
}  // namespace hackc::server
