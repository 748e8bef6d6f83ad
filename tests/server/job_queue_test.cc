// SPDX-License-Identifier: MIT
#include "server/job_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

namespace hackc::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(JobQueue, RunsInOrderOfArrival) {
  std::vector<int> order;
  std::promise<void> done;
  JobQueue queue("test", 1, 10);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(queue
                    .Push([&, i] {
                      order.push_back(i);
                      if (i == 3) done.set_value();
                    })
                    .ok());
  }
  done.get_future().wait();
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3));
}

TEST(JobQueue, FullQueueSaysWhenToComeBack) {
  std::promise<void> started, release;
  std::shared_future<void> released = release.get_future().share();
  JobQueue queue("compile", 1, 1);
  ASSERT_TRUE(queue
                  .Push([&] {
                    started.set_value();
                    released.wait();
                  })
                  .ok());
  started.get_future().wait();
  ASSERT_TRUE(queue.Push([] {}).ok());
  const absl::Status full = queue.Push([] {}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_THAT(std::string(full.message()), HasSubstr("compile queue is full: 1 waiting, limit 1"));
  EXPECT_THAT(std::string(full.message()), HasSubstr("try again in"));
  release.set_value();
}

TEST(JobQueue, RemovedJobsNeverRunAndFreeTheirPlace) {
  std::promise<void> started, release;
  std::shared_future<void> released = release.get_future().share();
  bool ran = false;
  std::promise<void> last;
  JobQueue queue("compile", 1, 1);
  absl::StatusOr<uint64_t> first = queue.Push([&] {
    started.set_value();
    released.wait();
  });
  started.get_future().wait();
  absl::StatusOr<uint64_t> second = queue.Push([&] { ran = true; });
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(queue.Remove(*second));
  EXPECT_FALSE(queue.Remove(*second));
  EXPECT_FALSE(queue.Remove(*first)) << "it runs";
  ASSERT_TRUE(queue.Push([&] { last.set_value(); }).ok());
  release.set_value();
  last.get_future().wait();
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace hackc::server
