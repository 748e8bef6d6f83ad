// SPDX-License-Identifier: MIT
#include "server/worker_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <future>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "server/convert.h"
#include "server/worker_pool.h"
#include "tests/server/fake_compiler.h"
#include "tests/server/testing.h"

namespace hackc::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using v1::worker::Reply;
using v1::worker::Request;

WorkerProcessOptions Options() {
  return {.argv = {HACKC_FAKE_SERVER, "--worker"}, .first_pause = milliseconds(1)};
}

Request KernelRequest(const std::string& config_json, const std::string& name = "k0") {
  KernelSource source;
  source.kernel.name = name;
  source.cuda = config_json;
  Request request;
  *request.mutable_kernel() = ToProto(source);
  return request;
}

// One kernel "k0" that behaves in some way.
std::string Behaving(const std::string& how, const std::string& marker = "") {
  return nlohmann::json{{"behave", {{"k0", how}}}, {"marker", marker}}.dump();
}

TEST(WorkerProcess, Compiles) {
  WorkerProcess worker(Options());
  const absl::StatusOr<Reply> reply = worker.Call(KernelRequest("{}"), seconds(60));
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_TRUE(StatusOf(*reply).ok()) << StatusOf(*reply);
  EXPECT_EQ(reply->kernel().cubin().substr(0, 11), "cubin of k0");
}

TEST(WorkerProcess, TheCompilersOwnErrorsKeepTheWorker) {
  WorkerProcess worker(Options());
  for (const char* how : {"error", "throw"}) {
    const absl::StatusOr<Reply> reply = worker.Call(KernelRequest(Behaving(how)), seconds(60));
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_TRUE(absl::IsInternal(StatusOf(*reply)));
    EXPECT_THAT(std::string(StatusOf(*reply).message()), HasSubstr("fake compiler"));
  }
}

TEST(WorkerProcess, ACrashNamesTheSignalAndTheNextCallWorks) {
  WorkerProcess worker(Options());
  const absl::StatusOr<Reply> crashed = worker.Call(KernelRequest(Behaving("crash")), seconds(60));
  EXPECT_THAT(std::string(crashed.status().message()), HasSubstr("killed by signal 11"));
  EXPECT_TRUE(worker.Call(KernelRequest("{}"), seconds(60)).ok());
}

TEST(WorkerProcess, AHangEndsAtTheLimit) {
  WorkerProcess worker(Options());
  ASSERT_TRUE(worker.Call(KernelRequest("{}"), seconds(60)).ok());
  const absl::StatusOr<Reply> hung =
      worker.Call(KernelRequest(Behaving("hang")), milliseconds(200));
  EXPECT_THAT(std::string(hung.status().message()), HasSubstr("no answer within 0.2 s"));
  EXPECT_TRUE(worker.Call(KernelRequest("{}"), seconds(60)).ok());
}

TEST(WorkerProcess, GarbageCostsTheWorker) {
  WorkerProcess worker(Options());
  const absl::StatusOr<Reply> lost = worker.Call(KernelRequest(Behaving("garbage")), seconds(60));
  EXPECT_THAT(std::string(lost.status().message()), HasSubstr("garbage"));
  EXPECT_TRUE(worker.Call(KernelRequest("{}"), seconds(60)).ok());
}

TEST(WorkerProcess, ABinaryThatIsNotThereIsAnError) {
  WorkerProcess worker({.argv = {"/nonexistent/worker"}, .first_pause = milliseconds(1)});
  const absl::Status status = worker.Call(KernelRequest("{}"), seconds(60)).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nonexistent/worker"));
}

TEST(WorkerProcess, InterruptEndsARunningCall) {
  WorkerProcess worker(Options());
  ASSERT_TRUE(worker.Call(KernelRequest("{}"), seconds(60)).ok());
  std::thread interrupter([&] {
    std::this_thread::sleep_for(milliseconds(50));
    worker.Interrupt();
  });
  EXPECT_FALSE(worker.Call(KernelRequest(Behaving("hang")), seconds(60)).ok());
  interrupter.join();
  EXPECT_FALSE(worker.Call(KernelRequest("{}"), seconds(60)).ok()) << "no new process after that";
}

// The child process of this one, 0 without.
pid_t Child() {
  const std::string self = std::to_string(getpid());
  pid_t child = 0;
  std::ifstream("/proc/" + self + "/task/" + self + "/children") >> child;
  return child;
}

TEST(WorkerProcess, IsReplacedAfterSomeCalls) {
  WorkerProcessOptions options = Options();
  options.calls_per_process = 2;
  WorkerProcess worker(options);
  std::set<pid_t> processes;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(worker.Call(KernelRequest("{}"), seconds(60)).ok()) << i;
    if (i % 2 == 0) {
      processes.insert(Child());
    } else {
      EXPECT_EQ(Child(), 0) << "it has answered its two";
    }
  }
  EXPECT_EQ(processes.size(), 3u);
  EXPECT_EQ(processes.count(0), 0u);
}

// The parent is killed in the middle of a call, as the server would be: its worker goes too.
TEST(WorkerProcess, DiesWithItsServer) {
  TempDir dir;
  const pid_t parent = fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    WorkerProcess worker(Options());
    const std::string config =
        nlohmann::json{{"behave", {{"k0", "hang"}}}, {"count_file", dir.File("started")}}.dump();
    (void)worker.Call(KernelRequest(config), seconds(60));
    _exit(0);
  }
  while (CountLines(dir.File("started")) == 0) std::this_thread::sleep_for(milliseconds(10));
  const std::string children =
      "/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children";
  pid_t worker = 0;
  std::ifstream(children) >> worker;
  ASSERT_GT(worker, 0);
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  const auto deadline = std::chrono::steady_clock::now() + seconds(20);
  // Gone, or a zombie of whoever adopts orphans here.
  const auto gone = [worker] {
    std::ifstream stat("/proc/" + std::to_string(worker) + "/stat");
    std::string pid, name, state;
    return !(stat >> pid >> name >> state) || state == "Z";
  };
  while (!gone() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_TRUE(gone());
}

WorkerPool::Factory ProcessFactory() {
  return [] { return std::make_unique<WorkerProcess>(Options()); };
}

TEST(WorkerPool, TriesOnceMoreOnAFreshWorker) {
  TempDir dir;
  WorkerPool pool(1, ProcessFactory());
  const absl::StatusOr<Reply> reply =
      pool.Run({.request = KernelRequest(Behaving("crash_once", dir.File("marker")))});
  EXPECT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(pool.lost(), 1u);
}

TEST(WorkerPool, ThenNamesTheKernelAndTheSignal) {
  WorkerPool pool(1, ProcessFactory());
  const absl::Status status = pool.Run({.request = KernelRequest(Behaving("crash"))}).status();
  EXPECT_TRUE(absl::IsInternal(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("compiling kernel \"k0\""));
  EXPECT_THAT(std::string(status.message()), HasSubstr("signal 11"));
  EXPECT_EQ(pool.lost(), 2u);
}

TEST(WorkerPool, AHangingKernelLeavesTheOtherWorkersAtWork) {
  TempDir dir;
  WorkerPool pool(2, ProcessFactory());
  std::promise<absl::Status> promise;
  std::future<absl::Status> hung = promise.get_future();
  const std::string config =
      nlohmann::json{{"behave", {{"k0", "hang"}}}, {"count_file", dir.File("started")}}.dump();
  pool.Submit({.request = KernelRequest(config)},
              [&](absl::StatusOr<Reply> reply) { promise.set_value(reply.status()); });
  while (CountLines(dir.File("started")) == 0) std::this_thread::sleep_for(milliseconds(10));
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(pool.Run({.request = KernelRequest("{}")}).ok());
  }
  EXPECT_EQ(hung.wait_for(seconds(0)), std::future_status::timeout) << "it hangs all the time";
  pool.Stop();
  EXPECT_TRUE(absl::IsUnavailable(hung.get()));
}

TEST(WorkerPool, ATimeLimitIsNotTriedAgain) {
  TempDir dir;
  WorkerPool pool(1, ProcessFactory(), {.kernel = milliseconds(300)});
  const std::string config =
      nlohmann::json{{"behave", {{"k0", "hang"}}}, {"count_file", dir.File("started")}}.dump();
  const absl::Status status = pool.Run({.request = KernelRequest(config)}).status();
  EXPECT_EQ(status, absl::InternalError("compiling kernel \"k0\": the worker was lost: "
                                        "no answer within 0.3 s; killed"));
  EXPECT_EQ(CountLines(dir.File("started")), 1);
  EXPECT_EQ(pool.lost(), 1u);
}

TEST(WorkerPool, WhatNobodyWaitsForAnyMoreIsNotTriedAgain) {
  TempDir dir;
  WorkerPool pool(1, ProcessFactory());
  const std::string config =
      nlohmann::json{{"behave", {{"k0", "crash"}}}, {"count_file", dir.File("started")}}.dump();
  const absl::StatusOr<Reply> reply =
      pool.Run({.request = KernelRequest(config), .cancelled = [&] {
                  return CountLines(dir.File("started")) > 0;  // they left while it ran
                }});
  EXPECT_TRUE(absl::IsCancelled(reply.status())) << reply.status();
  EXPECT_EQ(CountLines(dir.File("started")), 1);
}

TEST(WorkerPool, AReferenceIsNamedAndHasTheLimitOfAPlan) {
  struct Lost : Worker {
    explicit Lost(std::vector<milliseconds>* limits) : limits(limits) {}
    absl::StatusOr<Reply> Call(const Request& request, milliseconds limit) override {
      if (request.has_reference()) limits->push_back(limit);
      return absl::UnavailableError("killed");
    }
    void Interrupt() override {}
    std::vector<milliseconds>* limits;
  };
  std::vector<milliseconds> limits;
  Request request;
  request.mutable_reference()->set_name("k7");
  WorkerPool pool(1, [&] { return std::make_unique<Lost>(&limits); },
                  {.describe = seconds(1), .plan = seconds(2)});
  EXPECT_EQ(pool.Run({.request = request}).status(),
            absl::InternalError(
                "making the reference of kernel \"k7\": the worker was lost, twice: killed"));
  EXPECT_THAT(limits, ::testing::ElementsAre(seconds(2), seconds(2)));
}

TEST(WorkerPool, StopEndsWaitingAndRunningCalls) {
  TempDir dir;
  WorkerPool pool(1, ProcessFactory());
  std::promise<absl::Status> first, second;
  const std::string config =
      nlohmann::json{{"behave", {{"k0", "hang"}}}, {"count_file", dir.File("started")}}.dump();
  pool.Submit({.request = KernelRequest(config)},
              [&](absl::StatusOr<Reply> reply) { first.set_value(reply.status()); });
  pool.Submit({.request = KernelRequest("{}")},
              [&](absl::StatusOr<Reply> reply) { second.set_value(reply.status()); });
  while (CountLines(dir.File("started")) == 0) std::this_thread::sleep_for(milliseconds(10));
  pool.Stop();
  EXPECT_TRUE(absl::IsUnavailable(first.get_future().get()));
  EXPECT_TRUE(absl::IsUnavailable(second.get_future().get()));
  EXPECT_TRUE(absl::IsUnavailable(pool.Run({.request = KernelRequest("{}")}).status()));
}

}  // namespace
}  // namespace hackc::server
