// SPDX-License-Identifier: MIT
#include "server/message_channel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string_view>
#include <thread>

#include "hackc/v1/worker.pb.h"

namespace hackc::server {
namespace {

using v1::worker::CompiledKernel;

class MessageChannelTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0); }
  void TearDown() override {
    CloseSender();
    close(ends_[1]);
  }
  void CloseSender() {
    if (ends_[0] >= 0) close(ends_[0]);
    ends_[0] = -1;
  }
  void SendRaw(std::string_view bytes) {
    ASSERT_EQ(write(ends_[0], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  absl::Status Receive(std::chrono::milliseconds limit = std::chrono::seconds(10)) {
    return ReceiveMessage(ends_[1], &received_, std::chrono::steady_clock::now() + limit);
  }
  int ends_[2];
  CompiledKernel received_;
};

TEST_F(MessageChannelTest, CarriesMessagesLargerThanTheSocketsBuffer) {
  CompiledKernel sent;
  sent.set_cubin(std::string(10 << 20, 'x'));
  std::thread sender([&] { EXPECT_TRUE(SendMessage(ends_[0], sent, kNoDeadline).ok()); });
  EXPECT_TRUE(Receive().ok());
  sender.join();
  EXPECT_EQ(received_.cubin(), sent.cubin());
}

TEST_F(MessageChannelTest, CarriesEmptyMessages) {
  ASSERT_TRUE(SendMessage(ends_[0], CompiledKernel(), kNoDeadline).ok());
  EXPECT_TRUE(Receive().ok());
}

TEST_F(MessageChannelTest, RefusesALengthBeyondTheLimit) {
  SendRaw("\xff\xff\xff\x7f");
  EXPECT_TRUE(absl::IsDataLoss(Receive()));
}

TEST_F(MessageChannelTest, RefusesBytesThatAreNoMessage) {
  SendRaw(std::string_view("\x04\0\0\0\xff\xff\xff\xff", 8));
  EXPECT_TRUE(absl::IsDataLoss(Receive()));
}

TEST_F(MessageChannelTest, NoticesAnEndInTheMiddle) {
  SendRaw(std::string_view("\x04\0\0\0\x01", 5));
  CloseSender();
  EXPECT_TRUE(absl::IsUnavailable(Receive()));
}

TEST_F(MessageChannelTest, GivesUpAtTheDeadline) {
  SendRaw(std::string_view("\x04\0\0\0\x01", 5));
  EXPECT_TRUE(absl::IsDeadlineExceeded(Receive(std::chrono::milliseconds(20))));
}

TEST_F(MessageChannelTest, SendingToNobodyIsAnErrorAndNoSignal) {
  close(ends_[1]);
  EXPECT_TRUE(absl::IsUnavailable(SendMessage(ends_[0], CompiledKernel(), kNoDeadline)));
  ends_[1] = dup(ends_[0]);
}

TEST_F(MessageChannelTest, SendingGivesUpWhenNobodyReads) {
  CompiledKernel sent;
  sent.set_cubin(std::string(10 << 20, 'x'));
  EXPECT_TRUE(absl::IsDeadlineExceeded(SendMessage(
      ends_[0], sent, std::chrono::steady_clock::now() + std::chrono::milliseconds(20))));
}

}  // namespace
}  // namespace hackc::server
