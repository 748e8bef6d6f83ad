// SPDX-License-Identifier: MIT
// Timing on a GPU that misbehaves on request (tests/client/fake_cuda_library.cc): real bench
// processes, the fake driver in them. Whatever one kernel does, it alone is blamed, the others are
// timed, and the next request finds a bench process that works.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "cache/memory_store.h"
#include "server/engine.h"
#include "server/metrics.h"
#include "server/program_timer.h"
#include "server/worker_pool.h"
#include "server/worker_process.h"
#include "tests/server/fake_compiler.h"
#include "tests/server/testing.h"

namespace hackc::server {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class BenchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("LD_LIBRARY_PATH", HACKC_FAKE_CUDA_DIR, 1);
    Start();
  }
  void TearDown() override { unsetenv("LD_LIBRARY_PATH"); }

  void Start(EngineOptions options = {}, milliseconds limit = seconds(20)) {
    engine_ = nullptr;
    bench_ = std::make_shared<WorkerPool>(
        1,
        [] {
          return std::make_unique<WorkerProcess>(WorkerProcessOptions{
              .argv = {HACKC_FAKE_SERVER, "--bench", "0"}, .first_pause = milliseconds(1)});
        },
        WorkerLimits{.bench = limit, .attempts = 1});
    auto workers = std::make_shared<WorkerPool>(
        2, [this] { return std::make_unique<InProcessWorker>(compiler_); });
    options.gpu = {"Fake GPU", "sm_90a", driver_};
    options.bench = bench_;
    absl::StatusOr<std::unique_ptr<Engine>> engine =
        Engine::Create(options, store_, compiler_, std::move(workers));
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }
  // Without a GPU, on the same store.
  void StartWithoutGpu() {
    engine_ = nullptr;
    auto workers = std::make_shared<WorkerPool>(
        2, [this] { return std::make_unique<InProcessWorker>(compiler_); });
    engine_ = *Engine::Create({}, store_, compiler_, std::move(workers));
  }
  Answer Try(const json& config) { return Read(*engine_->Submit(FakeRequest(config.dump()))); }
  Answer Ask(const json& config) {
    Answer answer = Try(config);
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    return answer;
  }
  static bool HasStage(const Answer& answer, const std::string& stage) {
    return std::any_of(answer.progress.begin(), answer.progress.end(),
                       [&](const v1::Progress& progress) { return progress.stage() == stage; });
  }
  json Timing(const json& config) { return TimingOf(Ask(config)); }
  static json TimingOf(const Answer& answer) {
    if (!answer.report) return nullptr;
    return json::parse(answer.report->timing_json(), nullptr, /*allow_exceptions=*/false);
  }
  static std::vector<std::string> Statuses(const json& timing) {
    std::vector<std::string> statuses;
    for (const json& kernel : timing["kernels"]) statuses.push_back(kernel["status"]);
    return statuses;
  }

  std::shared_ptr<FakeCompiler> compiler_ = std::make_shared<FakeCompiler>();
  std::shared_ptr<cache::Store> store_ = std::make_shared<cache::MemoryStore>();
  std::shared_ptr<WorkerPool> bench_;
  std::string driver_ = "1.2.3";
  std::unique_ptr<Engine> engine_;
};

TEST_F(BenchTest, ReportsTimesFloorsAndTotals) {
  const json timing = Timing({{"kernels", 3}});
  EXPECT_EQ(timing["gpu"], "Fake GPU");
  EXPECT_EQ(timing["driver"], "1.2.3");
  EXPECT_EQ(timing["final"], true) << timing.dump(1);
  EXPECT_EQ(timing["copy_bytes_per_second"], 4e12);
  ASSERT_THAT(timing["kernels"], SizeIs(3));
  for (const json& kernel : timing["kernels"]) {
    EXPECT_EQ(kernel["status"], "ok");
    ASSERT_THAT(kernel["times"], SizeIs(2));
    const json& largest = kernel["times"][0];
    EXPECT_EQ(largest["shape"], "largest");
    EXPECT_EQ(largest["symbols"], (json{{"seq", 100}}));
    EXPECT_EQ(largest["median_us"], 10);
    EXPECT_EQ(largest["spread"], 0);
    EXPECT_EQ(largest["bytes"], 51200);
    EXPECT_EQ(largest["floor_us"], 0.0128);  // 51,200 bytes at 4 TB/s
    EXPECT_EQ(largest["share_of_floor"], 0.00128);
    EXPECT_EQ(largest["predicted_us"], 0.01067);  // at 4.8 TB/s
    EXPECT_EQ(kernel["times"][1]["symbols"], (json{{"seq", 1}}));
  }
  ASSERT_THAT(timing["entry_points"], SizeIs(1));
  const json& prefill = timing["entry_points"][0];
  EXPECT_EQ(prefill["launches"], 7);
  EXPECT_EQ(prefill["kernel_launches"], (json{{"k0", 1}, {"k1", 3}, {"k2", 3}}));
  EXPECT_EQ(prefill["totals"][0]["median_us"], 70);
  EXPECT_EQ(prefill["totals"][0]["complete"], true);
}

TEST_F(BenchTest, AStoredProgramCarriesItsReportAndIsNotTimedAgain) {
  const Answer cold = Ask({{"kernels", 2}});
  const Answer warm = Ask({{"kernels", 2}});
  EXPECT_TRUE(warm.program->hit());
  EXPECT_EQ(warm.report->timing_json(), cold.report->timing_json());
  EXPECT_EQ(warm.program->bytes(), cold.program->bytes());
  for (const v1::Progress& progress : warm.progress) EXPECT_NE(progress.stage(), "time");
  Start();  // another server on the same store
  EXPECT_EQ(Ask({{"kernels", 2}}).report->timing_json(), cold.report->timing_json());
}

TEST_F(BenchTest, AnotherDriverMeasuresAgain) {
  (void)Ask({{"kernels", 1}});
  driver_ = "4.5.6";
  Start();
  const Answer warm = Ask({{"kernels", 1}});
  EXPECT_TRUE(warm.program->hit());
  EXPECT_EQ(TimingOf(warm)["driver"], "4.5.6");
}

struct FaultCase {
  const char* word;
  const char* status;
  const char* detail;
};

class BenchFaults : public BenchTest, public ::testing::WithParamInterface<FaultCase> {};

TEST_P(BenchFaults, NothingThatFailsItsCheckIsPublishedOrKept) {
  const FaultCase& fault = GetParam();
  if (std::string(fault.word) == "hang") Start({}, seconds(3));
  const json bad = {{"kernels", 3}, {"gpu", {{"k1", fault.word}}}, {"salt", fault.word}};
  for (uint64_t round = 1; round <= 2; ++round) {
    const Answer refused = Try(bad);
    EXPECT_TRUE(absl::IsInternal(refused.status)) << refused.status;
    EXPECT_THAT(std::string(refused.status.message()),
                AllOf(HasSubstr("kernel \"k1\": failed on the GPU: "), HasSubstr(fault.status),
                      HasSubstr(fault.detail)));
    EXPECT_THAT(refused.kernels, IsEmpty());
    EXPECT_FALSE(refused.program || refused.report);
    std::map<std::string, int64_t> stored = store_->GetStats().actions;
    EXPECT_EQ(stored["program"], 0) << round;
    EXPECT_EQ(stored["kernel"], 3) << "k0, k2 and the reference";
    EXPECT_EQ(engine_->Status().refused_kernels(), round);
  }
  EXPECT_EQ(Timing({{"kernels", 2}, {"salt", "next"}})["final"], true);
}

INSTANTIATE_TEST_SUITE_P(
    Words, BenchFaults,
    ::testing::Values(FaultCase{"wrong", "wrong_result", "set0.y[2367] is 0, the reference is"},
                      FaultCase{"behind", "red_zone",
                                "set0.y: written 0 bytes behind its end (at seq 37)"},
                      FaultCase{"before", "red_zone", "set0.y: written 4 bytes before its start"},
                      FaultCase{"illegal", "cuda_error", "CUDA_ERROR_ILLEGAL_ADDRESS"},
                      FaultCase{"crash", "crash", "killed by signal 11"},
                      FaultCase{"hang", "hang", "no answer within 3 s; killed"}),
    [](const auto& info) { return std::string(info.param.word); });

TEST_F(BenchTest, ImpossibleTimesAreToldOfTheirKernelOnly) {
  for (const auto& [word, detail] :
       std::map<std::string, std::string>{{"no_time", "the launches took no time (at seq 100)"},
                                          {"fast", "0.001 us, the hardware needs 0.0106667 us"}}) {
    const json odd = {{"kernels", 3}, {"gpu", {{"k1", word}}}, {"salt", word}};
    const json timing = Timing(odd);
    EXPECT_THAT(Statuses(timing), ElementsAre("ok", "impossible_time", "ok")) << timing.dump(1);
    EXPECT_THAT(std::string(timing["kernels"][1]["detail"]), HasSubstr(detail));
    ASSERT_THAT(timing["problems"], SizeIs(1));
    EXPECT_THAT(std::string(timing["problems"][0]),
                AllOf(HasSubstr("kernel \"k1\""), HasSubstr("impossible_time")));
    EXPECT_EQ(timing["final"], false);
    EXPECT_EQ(timing["entry_points"][0]["totals"][0]["complete"], false);
    for (const int good : {0, 2}) EXPECT_EQ(timing["kernels"][good]["times"][0]["median_us"], 10);
    // Such times are not kept, the check is: the next request measures again.
    const Answer again = Ask(odd);
    EXPECT_TRUE(HasStage(again, "time"));
    EXPECT_FALSE(HasStage(again, "check"));
  }
}

// It matched its reference and then broke the process: the program is out by then, and taken back.
TEST_F(BenchTest, AKernelThatFailsWhileItIsTimedEndsTheStreamAndIsNotKept) {
  const json bad = {{"kernels", 2}, {"gpu", {{"k1", "in_graph"}}}};
  for (int round = 0; round < 2; ++round) {
    const Answer answer = Try(bad);
    EXPECT_TRUE(absl::IsInternal(answer.status)) << answer.status;
    EXPECT_THAT(std::string(answer.status.message()),
                AllOf(HasSubstr("kernel \"k1\""), HasSubstr("cuda_error")));
    ASSERT_TRUE(answer.program);
    EXPECT_FALSE(answer.program->hit());
    EXPECT_TRUE(HasStage(answer, "check")) << round;
    EXPECT_EQ(store_->GetStats().actions["program"], 0);
  }
}

TEST_F(BenchTest, AProcessThatIsLostOnceInACheckCostsNoKernel) {
  TempDir dir;
  const json config = {{"kernels", 3}, {"gpu", {{"k1", "once:" + dir.File("crashed")}}}};
  EXPECT_EQ(Timing(config)["final"], true);
  EXPECT_TRUE(std::filesystem::exists(dir.File("crashed")));
  EXPECT_EQ(engine_->Status().workers_lost(), 1u);
}

TEST_F(BenchTest, WhatAServerWithoutAGpuStoredIsCheckedFirst) {
  StartWithoutGpu();
  const json bad = {{"kernels", 2}, {"gpu", {{"k1", "wrong"}}}}, good = {{"kernels", 1}};
  EXPECT_FALSE(Ask(bad).program->hit());
  EXPECT_FALSE(Ask(good).program->hit());
  EXPECT_TRUE(Ask(bad).program->hit());
  Start();
  const Answer refused = Try(bad);
  EXPECT_TRUE(absl::IsInternal(refused.status)) << refused.status;
  EXPECT_FALSE(refused.program);
  const Answer checked = Ask(good);
  EXPECT_TRUE(checked.program->hit());
  EXPECT_TRUE(HasStage(checked, "check"));
  EXPECT_FALSE(HasStage(Ask(good), "check"));
}

TEST_F(BenchTest, AKernelWithoutAReferenceIsNotPublished) {
  struct NoReference : FakeCompiler {
    absl::StatusOr<Reference> ReferenceKernel(const std::string& loop,
                                              const std::string& arch) override {
      if (loop == "loop of k1") return absl::InternalError("this has no reference");
      return FakeCompiler::ReferenceKernel(loop, arch);
    }
  };
  compiler_ = std::make_shared<NoReference>();
  Start();
  const Answer refused = Try({{"kernels", 2}});
  EXPECT_EQ(refused.status,
            absl::InternalError("kernel \"k1\": its reference: this has no reference"));
  EXPECT_FALSE(refused.program);
}

// Builds of references call back into what the call was made with, so all of them have to end
// before it does.
TEST_F(BenchTest, AReferenceThatFailsLeavesNoBuildBehind) {
  struct Second : FakeCompiler {
    absl::StatusOr<Reference> ReferenceKernel(const std::string& loop,
                                              const std::string& arch) override {
      if (references++ > 0) return absl::InternalError("the second reference fails");
      return FakeCompiler::ReferenceKernel(loop, arch);
    }
    std::atomic<int> references{0};
  };
  const auto compiler = std::make_shared<Second>();
  WorkerPool workers(2, [&] { return std::make_unique<InProcessWorker>(compiler); });
  Metrics metrics;
  Artifacts artifacts(store_, metrics);
  KernelBuilder kernels(artifacts, workers, metrics);
  const GpuInfo gpu{"Fake", "sm_90a", "1"};
  StoredProgram program;
  program.program.set_arch("sm_90a");
  for (const char* name : {"k0", "k1"}) {
    v1::Kernel* kernel = program.program.add_kernels();
    kernel->set_name(name);
    kernel->set_arch("sm_90a");
    (*program.ir.add_kernels()->mutable_texts())["loop"] = std::string("loop of ") + name;
    program.cubins.push_back(std::make_shared<const std::string>("x"));
  }
  const std::thread::id here = std::this_thread::get_id();
  std::atomic<bool> returned{false};
  std::atomic<int> late{0};
  {
    ProgramTimer timer({*compiler, kernels, workers, *bench_, gpu, "13.0"}, program, [&] {
      // Asked of the first reference's build: in no hurry to answer.
      if (std::this_thread::get_id() != here && compiler->references == 1) {
        std::this_thread::sleep_for(milliseconds(200));
      }
      late += returned;
      return false;
    });
    EXPECT_EQ(timer.Check([](int, int, const std::string&) {}),
              absl::InternalError("kernel \"k1\": its reference: the second reference fails"));
    returned = true;
  }
  std::this_thread::sleep_for(milliseconds(500));
  EXPECT_EQ(late, 0);
}

TEST_F(BenchTest, ADisturbedReportSaysSoAndIsNotKept) {
  const json noisy = {{"kernels", 2}, {"gpu", {{"k0", "noisy"}}}};
  const json timing = Timing(noisy);
  EXPECT_THAT(Statuses(timing), ElementsAre("ok", "ok"));
  EXPECT_EQ(timing["disturbed"], true);
  EXPECT_EQ(timing["final"], false);
  EXPECT_THAT(timing["problems"], IsEmpty());
  EXPECT_EQ(timing["kernels"][0]["times"][0]["disturbed"], true);
  EXPECT_GT(timing["kernels"][0]["times"][0]["spread"], 0.05);
  EXPECT_EQ(timing["kernels"][1]["times"][0]["disturbed"], false);
}

// Children of this process whose name is that of bench processes.
std::vector<pid_t> BenchProcesses() {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "stat");
    std::string name, state;
    pid_t pid = 0, parent = 0;
    if (file >> pid >> name >> state >> parent && name == "(hackc-bench)" && parent == getpid()) {
      found.push_back(pid);
    }
  }
  return found;
}

TEST_F(BenchTest, AProcessThatIsLostBetweenProgramsCostsNoKernel) {
  EXPECT_EQ(Timing({{"kernels", 1}, {"salt", "a"}})["final"], true);
  const std::vector<pid_t> processes = BenchProcesses();
  ASSERT_THAT(processes, SizeIs(1));
  kill(processes[0], SIGKILL);
  EXPECT_EQ(Timing({{"kernels", 1}, {"salt", "b"}})["final"], true);
}

TEST_F(BenchTest, AProgramForAnotherArchIsNotTimed) {
  v1::CompileRequest request = FakeRequest("{}");
  request.mutable_target()->set_arch("sm_80");
  const Answer answer = Read(*engine_->Submit(request));
  EXPECT_EQ(TimingOf(answer)["problems"],
            json({"not timed: compiled for sm_80, the GPU is sm_90a"}));
}

TEST_F(BenchTest, WithoutRoomForACopyKernelsAreCheckedButNotTimed) {
  setenv("HACKC_FAKE_CUDA_LARGEST", "2000000", 1);  // a copy is between two buffers of 4 MiB
  Start();
  const json timing = Timing({{"kernels", 1}});
  EXPECT_THAT(Statuses(timing), ElementsAre("not_timed"));
  EXPECT_THAT(timing["problems"].dump(), HasSubstr("4194304 bytes for a copy"));
  const Answer wrong = Try({{"kernels", 2}, {"gpu", {{"k1", "wrong"}}}});
  EXPECT_EQ(wrong.status.code(), absl::StatusCode::kInternal) << wrong.status;
  EXPECT_THAT(std::string(wrong.status.message()), HasSubstr("k1"));
  unsetenv("HACKC_FAKE_CUDA_LARGEST");
}

TEST_F(BenchTest, WithoutADriverTheReportSaysWhy) {
  unsetenv("LD_LIBRARY_PATH");
  Start();
  const json timing = Timing({{"kernels", 2}});
  EXPECT_THAT(Statuses(timing), ElementsAre("not_timed", "not_timed"));
  EXPECT_THAT(std::string(timing["problems"][0]), HasSubstr("no CUDA driver on this machine"));
}

TEST_F(BenchTest, NoCompileWaitsForAMeasurement) {
  EngineOptions options;
  options.bench_queue_limit = 0;
  Start(options);
  json slow = {{"kernels", 30}, {"salt", "slow"}};  // a second each
  for (int i = 0; i < 30; ++i) slow["gpu"]["k" + std::to_string(i)] = "slow_graph";
  std::shared_ptr<EventStream> first = engine_->Submit(FakeRequest(slow.dump()));
  bool has_program = false;
  while (std::optional<v1::CompileEvent> event = first->WaitNext()) {
    has_program |= event->has_program();
    if (event->has_progress() && event->progress().stage() == "time") break;
  }
  EXPECT_TRUE(has_program) << "the program comes before its times";
  // The GPU is taken and no program may wait for it: others are checked between two kernels, get
  // their programs, and are told.
  for (int i = 0; i < 3; ++i) {
    const json timing = Timing({{"kernels", 2}, {"salt", std::to_string(i)}});
    EXPECT_THAT(std::string(timing["problems"][0]), HasSubstr("the timing queue is full"));
  }
  EXPECT_FALSE(first->ended());
  first->Cancel();
}

TEST_F(BenchTest, StopsInTheMiddleOfACheckOrAMeasurement) {
  for (const auto& [word, stage] :
       std::map<std::string, std::string>{{"hang", "check"}, {"slow_graph", "time"}}) {
    Start();
    const json config = {{"kernels", 1}, {"gpu", {{"k0", word}}}, {"salt", word}};
    std::shared_ptr<EventStream> stream = engine_->Submit(FakeRequest(config.dump()));
    while (std::optional<v1::CompileEvent> event = stream->WaitNext()) {
      if (event->has_progress() && event->progress().stage() == stage) break;
    }
    const auto start = std::chrono::steady_clock::now();
    engine_->CancelAll();
    EXPECT_TRUE(absl::IsUnavailable(Read(*stream).status));
    stream = nullptr;
    engine_ = nullptr;
    EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(15));
  }
}

}  // namespace
}  // namespace hackc::server
