// SPDX-License-Identifier: MIT
#include "server/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "cache/memory_store.h"
#include "cache/sqlite_store.h"
#include "server/metrics.h"
#include "server/worker_pool.h"
#include "tests/server/fake_compiler.h"
#include "tests/server/testing.h"

namespace hackc::server {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// A store that can lose blobs and refuse writes.
class FaultyStore : public cache::MemoryStore {
 public:
  absl::StatusOr<std::string> GetBlob(const cache::Digest& digest) override {
    ++reads;
    if (digest.ToString() == lost_blob) return absl::NotFoundError("lost");
    return MemoryStore::GetBlob(digest);
  }
  absl::StatusOr<cache::Action> PutAction(const cache::NewAction& made) override {
    if (full) return absl::ResourceExhaustedError("disk full");
    return MemoryStore::PutAction(made);
  }
  std::string lost_blob;
  std::atomic<int> reads{0};
  std::atomic<bool> full{false};
};

class EngineTest : public ::testing::Test {
 protected:
  void Start(EngineOptions options = {}, int workers = 2) {
    engine_ = nullptr;
    auto pool = std::make_shared<WorkerPool>(
        workers, [this] { return std::make_unique<InProcessWorker>(compiler_); });
    absl::StatusOr<std::unique_ptr<Engine>> engine =
        Engine::Create(options, store_, compiler_, std::move(pool));
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }
  Answer Ask(const v1::CompileRequest& request) { return Read(*engine_->Submit(request)); }
  Answer Ask(const json& config) { return Ask(FakeRequest(config.dump())); }

  // Until the compiler has begun `count` kernels.
  void AwaitCompiles(int count) {
    while (compiler_->compiles < count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void AwaitPlans(int count) {
    while (compiler_->plans < count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  std::shared_ptr<FakeCompiler> compiler_ = std::make_shared<FakeCompiler>();
  std::shared_ptr<FaultyStore> faulty_ = std::make_shared<FaultyStore>();
  std::shared_ptr<cache::Store> store_ = faulty_;
  std::unique_ptr<Engine> engine_;
};

json Slow(const std::string& who, int milliseconds) {
  return {{"behave", {{who, "slow"}}}, {"slow_ms", milliseconds}};
}

TEST_F(EngineTest, CompilesOnceThenAnswersFromTheStoreWithoutAPass) {
  Start();
  const Answer cold = Ask(json{{"kernels", 3}});
  ASSERT_TRUE(cold.status.ok()) << cold.status;
  ASSERT_THAT(cold.kernels, SizeIs(3));
  EXPECT_EQ(cold.report->misses(), 3u);
  EXPECT_EQ(cold.report->hits(), 0u);
  EXPECT_FALSE(cold.program->hit());
  EXPECT_EQ(cold.program->digest(), cache::Sha256(cold.program->bytes()).ToString());
  for (const v1::KernelReady& ready : cold.kernels) {
    EXPECT_FALSE(ready.hit());
    EXPECT_EQ(cache::Sha256(ready.cubin()).ToString(), ready.kernel().digest());
    EXPECT_EQ(ready.kernel().registers(), 42u);
    EXPECT_EQ(ready.kernel().static_shared_bytes(), 256u);
    EXPECT_EQ(ready.kernel().cubin_bytes(), 1000u);
    EXPECT_EQ(ready.kernel().key().substr(0, 7), "sha256:");
  }

  const Answer warm = Ask(json{{"kernels", 3}});
  ASSERT_TRUE(warm.status.ok()) << warm.status;
  EXPECT_EQ(compiler_->plans, 1);
  EXPECT_EQ(compiler_->compiles, 3);
  EXPECT_TRUE(warm.program->hit());
  EXPECT_EQ(warm.report->hits(), 3u);
  EXPECT_EQ(warm.program->bytes(), cold.program->bytes());
  EXPECT_THAT(warm.kernels, SizeIs(3));
  EXPECT_THAT(warm.kernels,
              Contains(::testing::Property(&v1::KernelReady::cubin, cold.kernels[0].cubin())));
}

TEST_F(EngineTest, ProgramKnowsItsCompiledKernels) {
  Start();
  const Answer answer = Ask(json{{"kernels", 2}});
  v1::Program program;
  ASSERT_TRUE(program.ParseFromString(answer.program->bytes()));
  ASSERT_EQ(program.kernels_size(), 2);
  for (const v1::Kernel& kernel : program.kernels()) {
    const absl::StatusOr<v1::Blob> blob = engine_->Fetch(kernel.digest());
    ASSERT_TRUE(blob.ok()) << blob.status();
    EXPECT_EQ(blob->data().size(), kernel.cubin_bytes());
  }
  EXPECT_TRUE(engine_->Fetch(answer.program->digest()).ok());
}

TEST_F(EngineTest, SendsCubinsAndIrOnlyWhenAsked) {
  Start();
  v1::CompileRequest request = FakeRequest("{}");
  request.set_with_cubins(false);
  for (int round = 0; round < 2; ++round) {  // built, then from the store
    request.set_with_ir(false);
    const Answer plain = Ask(request);
    EXPECT_EQ(plain.kernels[0].cubin(), "");
    EXPECT_TRUE(plain.kernels[0].ir().empty());
    EXPECT_TRUE(plain.report->ir().empty());
    request.set_with_ir(true);
    const Answer with_ir = Ask(request);
    EXPECT_EQ(with_ir.kernels[0].ir().at("loop"), "loop of " + with_ir.kernels[0].kernel().name());
    EXPECT_EQ(with_ir.kernels[0].ir().count("cuda"), 1u);
    EXPECT_EQ(with_ir.report->ir().at("tensor"), "tensor");
  }
  EXPECT_EQ(compiler_->plans, 1);
}

TEST_F(EngineTest, TheNameIsInNoKeyAndNoBytes) {
  Start();
  v1::CompileRequest request = FakeRequest("{}");
  const Answer first = Ask(request);
  request.mutable_model()->set_name("another");
  const Answer second = Ask(request);
  EXPECT_TRUE(second.program->hit());
  EXPECT_EQ(first.program->bytes(), second.program->bytes());
}

TEST_F(EngineTest, ProgramsShareKernels) {
  Start();
  Ask(json{{"kernels", 2}});
  const Answer more = Ask(json{{"kernels", 3}});
  EXPECT_EQ(more.report->hits(), 2u);
  EXPECT_EQ(more.report->misses(), 1u);
  EXPECT_EQ(compiler_->compiles, 3);
}

TEST_F(EngineTest, SixtyFourEqualRequestsAreOneBuildAndEqualAnswers) {
  Start();
  json config = Slow("k0", 100);
  std::vector<std::shared_ptr<EventStream>> streams;
  for (int i = 0; i < 64; ++i) streams.push_back(engine_->Submit(FakeRequest(config.dump())));
  std::vector<std::future<Answer>> answers;
  for (const auto& stream : streams) {
    answers.push_back(std::async(std::launch::async, [stream] { return Read(*stream); }));
  }
  std::set<std::string> bytes;
  for (std::future<Answer>& future : answers) {
    const Answer answer = future.get();
    ASSERT_TRUE(answer.status.ok()) << answer.status;
    EXPECT_THAT(answer.kernels, SizeIs(2));
    bytes.insert(answer.program->bytes());
  }
  EXPECT_THAT(bytes, SizeIs(1));
  EXPECT_EQ(compiler_->plans, 1);
  EXPECT_EQ(compiler_->compiles, 2);
}

TEST_F(EngineTest, DifferentProgramsThatShareAKernelBuildItOnce) {
  Start({}, 4);
  json one = Slow("k0", 100), two = Slow("k0", 100);
  one["kernels"] = 1;
  two["kernels"] = 1;
  two["other"] = true;
  const std::shared_ptr<EventStream> first = engine_->Submit(FakeRequest(one.dump()));
  const std::shared_ptr<EventStream> second = engine_->Submit(FakeRequest(two.dump()));
  EXPECT_TRUE(Read(*first).status.ok());
  EXPECT_TRUE(Read(*second).status.ok());
  EXPECT_EQ(compiler_->plans, 2);
  EXPECT_EQ(compiler_->compiles, 1);
}

TEST_F(EngineTest, TheBuildOutlivesItsFirstCaller) {
  Start();
  const json config = Slow("k0", 100);
  std::shared_ptr<EventStream> first = engine_->Submit(FakeRequest(config.dump()));
  AwaitPlans(1);
  const std::shared_ptr<EventStream> second = engine_->Submit(FakeRequest(config.dump()));
  while (engine_->metrics().program_joins == 0) std::this_thread::yield();
  first->Cancel();
  EXPECT_TRUE(absl::IsCancelled(first->status()));
  first = nullptr;
  const Answer answer = Read(*second);
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(compiler_->plans, 1);
}

TEST_F(EngineTest, ASharedBuildIsFinishedEvenIfAllLeave) {
  Start();
  const json config = Slow("k0", 50);
  std::shared_ptr<EventStream> first = engine_->Submit(FakeRequest(config.dump()));
  AwaitPlans(1);
  std::shared_ptr<EventStream> second = engine_->Submit(FakeRequest(config.dump()));
  while (engine_->metrics().program_joins == 0) std::this_thread::yield();
  first = nullptr;
  second = nullptr;
  ASSERT_TRUE(engine_->WaitIdle(std::chrono::seconds(20)));
  EXPECT_EQ(engine_->metrics().jobs_cancelled, 0u);
  EXPECT_TRUE(Ask(config).program->hit());
}

TEST_F(EngineTest, ABuildThatNobodyWaitsForStopsAtTheNextKernelAndKeepsWhatItHas) {
  Start({}, 1);
  json config = Slow("k0", 100);
  config["kernels"] = 10;
  const std::shared_ptr<EventStream> stream = engine_->Submit(FakeRequest(config.dump()));
  AwaitCompiles(1);
  stream->Cancel();
  EXPECT_EQ(engine_->metrics().jobs_cancelled, 1u);
  const Answer again = Ask(config);
  EXPECT_TRUE(again.status.ok());
  EXPECT_EQ(again.report->hits(), 1u);
  EXPECT_EQ(compiler_->compiles, 10);
}

TEST_F(EngineTest, AFullQueueRefusesAndServesAgainLater) {
  Start({.queue_limit = 1}, 1);
  std::vector<std::shared_ptr<EventStream>> accepted;
  json config = Slow("plan", 200);
  config["salt"] = "0";
  accepted.push_back(engine_->Submit(FakeRequest(config.dump())));
  AwaitPlans(1);
  config["salt"] = "1";
  accepted.push_back(engine_->Submit(FakeRequest(config.dump())));
  while (engine_->Status().queued() < 1) std::this_thread::yield();
  config["salt"] = "2";
  const Answer refused = Ask(config);
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status)) << refused.status;
  EXPECT_THAT(std::string(refused.status.message()), HasSubstr("try again in"));
  for (const auto& stream : accepted) EXPECT_TRUE(Read(*stream).status.ok());
  EXPECT_TRUE(Ask(config).status.ok());
}

TEST_F(EngineTest, LeavingTheQueueFreesThePlace) {
  Start({.queue_limit = 1}, 1);
  json config = Slow("plan", 200);
  const std::shared_ptr<EventStream> running = engine_->Submit(FakeRequest(config.dump()));
  AwaitPlans(1);
  config["salt"] = "1";
  const std::shared_ptr<EventStream> waiting = engine_->Submit(FakeRequest(config.dump()));
  while (engine_->Status().queued() < 1) std::this_thread::yield();
  waiting->Cancel();
  EXPECT_EQ(engine_->Status().queued(), 0u);
  config["salt"] = "2";
  EXPECT_TRUE(Ask(config).status.ok());
  EXPECT_EQ(compiler_->plans, 2) << "the one that left was never planned";
}

TEST_F(EngineTest, OpenAnswersAreLimited) {
  Start({.stream_limit = 1});
  const std::shared_ptr<EventStream> open = engine_->Submit(FakeRequest("{}"));
  EXPECT_TRUE(absl::IsResourceExhausted(Ask(json::object()).status));
}

TEST_F(EngineTest, AReaderThatLetsGoFreesItsPlaceAtOnce) {
  Start({.stream_limit = 1});
  for (int i = 0; i < 200; ++i) {
    const Answer answer = Ask(json::object());
    ASSERT_TRUE(answer.status.ok()) << i << ": " << answer.status;
  }
}

TEST_F(EngineTest, ABurstOfHitsIsServed) {
  Start();
  const json config = Slow("front", 2);
  ASSERT_TRUE(Ask(config).status.ok());
  std::vector<std::shared_ptr<EventStream>> streams;
  for (int i = 0; i < 600; ++i) streams.push_back(engine_->Submit(FakeRequest(config.dump())));
  for (const auto& stream : streams) {
    const Answer answer = Read(*stream);
    ASSERT_TRUE(answer.status.ok()) << answer.status;
    EXPECT_TRUE(answer.program->hit());
  }
}

TEST_F(EngineTest, ReadersOfAStoredProgramShareOneCopy) {
  Start();
  ASSERT_TRUE(Ask(json::object()).status.ok());
  ASSERT_TRUE(engine_->WaitIdle(std::chrono::seconds(20)));
  const auto served = [this] {
    std::shared_ptr<EventStream> stream = engine_->Submit(FakeRequest("{}"));
    EXPECT_TRUE(stream->WaitNext());
    return stream;
  };
  faulty_->reads = 0;
  std::vector<std::shared_ptr<EventStream>> stalled = {served()};
  const int reads = faulty_->reads;
  EXPECT_GT(reads, 0);
  for (int i = 0; i < 20; ++i) stalled.push_back(served());
  EXPECT_EQ(faulty_->reads, reads);
  EXPECT_EQ(engine_->Status().program_hits(), 21u);
  EXPECT_EQ(engine_->Status().cache_hits(), 42u);
  EXPECT_EQ(engine_->Status().open_answers(), 21u);
  for (const auto& stream : stalled) {
    const Answer rest = Read(*stream);
    EXPECT_TRUE(rest.status.ok() && rest.program && rest.report) << rest.status;
  }
  stalled.clear();
  EXPECT_EQ(engine_->Status().open_answers(), 0u);
  ASSERT_TRUE(engine_->WaitIdle(std::chrono::seconds(20)));  // the threads that served them as well
  EXPECT_TRUE(Ask(json::object()).program->hit());
  EXPECT_GT(faulty_->reads, reads) << "it is kept for its readers only";
}

TEST_F(EngineTest, BadRequestsNameTheField) {
  Start();
  const Answer invalid = Ask(json{{"invalid", "rope_scaling.type"}});
  EXPECT_EQ(invalid.status,
            absl::InvalidArgumentError("model.config.rope_scaling.type: not supported"));
  v1::CompileRequest arch = FakeRequest("{}");
  arch.mutable_target()->set_arch("sm_35");
  EXPECT_EQ(Ask(arch).status,
            absl::InvalidArgumentError(
                "target.arch: expected one of sm_80, sm_90a (NVRTC 13.0), got \"sm_35\""));
  EXPECT_TRUE(absl::IsInvalidArgument(Ask(v1::CompileRequest()).status));
  EXPECT_EQ(compiler_->plans, 0);
}

TEST_F(EngineTest, ExceptionsBecomeInternal) {
  Start();
  for (const char* where : {"front", "plan", "k1"}) {
    const Answer answer = Ask(json{{"behave", {{where, "throw"}}}, {"salt", where}});
    EXPECT_TRUE(absl::IsInternal(answer.status)) << answer.status;
    EXPECT_THAT(std::string(answer.status.message()), HasSubstr("thrown by the fake compiler"));
  }
  EXPECT_TRUE(Ask(json::object()).status.ok());
}

TEST_F(EngineTest, AFailedKernelIsNamedAndNotStored) {
  Start();
  const Answer failed = Ask(json{{"behave", {{"k1", "error"}}}});
  EXPECT_TRUE(absl::IsInternal(failed.status));
  EXPECT_THAT(std::string(failed.status.message()), HasSubstr("kernel \"k1\": the fake compiler"));
  EXPECT_FALSE(failed.program.has_value());
}

TEST_F(EngineTest, AFailureOfResourcesIsNotRemembered) {
  Start();
  TempDir dir;
  const json config{{"behave", {{"k0", "exhausted_once"}}}, {"marker", dir.File("marker")}};
  EXPECT_TRUE(absl::IsResourceExhausted(Ask(config).status));
  EXPECT_TRUE(Ask(config).status.ok());
}

TEST_F(EngineTest, AFullDiskStopsStoringNotServing) {
  Start();
  faulty_->full = true;
  for (int i = 0; i < 2; ++i) {
    const Answer answer = Ask(json::object());
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    EXPECT_EQ(answer.report->misses(), 2u);
  }
  EXPECT_GT(engine_->metrics().store_failures, 0u);
  faulty_->full = false;
  Ask(json::object());
  EXPECT_TRUE(Ask(json::object()).program->hit());
}

TEST_F(EngineTest, ALostCubinIsBuiltAgain) {
  Start();
  const Answer cold = Ask(json::object());
  faulty_->lost_blob = cold.kernels[0].kernel().digest();
  const Answer again = Ask(json::object());
  ASSERT_TRUE(again.status.ok()) << again.status;
  EXPECT_EQ(again.report->hits(), 1u);
  EXPECT_EQ(again.report->misses(), 1u);
  EXPECT_EQ(again.program->bytes(), cold.program->bytes());
}

TEST_F(EngineTest, ALostProgramIsBuiltAgainFromItsKernels) {
  Start();
  const Answer cold = Ask(json::object());
  faulty_->lost_blob = cold.program->digest();
  const Answer again = Ask(json::object());
  EXPECT_EQ(again.report->hits(), 2u);
  EXPECT_EQ(again.program->bytes(), cold.program->bytes());
  faulty_->lost_blob = "";
  EXPECT_TRUE(Ask(json::object()).program->hit());
}

TEST_F(EngineTest, ARestartAnswersFromTheStoreWithEqualBytes) {
  TempDir dir;
  const auto open = [&] {
    store_ = nullptr;
    engine_ = nullptr;
    store_ = *cache::OpenSqliteStore({.directory = dir.path()});
    Start();
  };
  open();
  const Answer cold = Ask(json::object());
  ASSERT_TRUE(cold.status.ok());
  open();
  const Answer warm = Ask(json::object());
  EXPECT_TRUE(warm.program->hit());
  EXPECT_EQ(warm.program->bytes(), cold.program->bytes());
  EXPECT_EQ(compiler_->plans, 1);
}

TEST_F(EngineTest, TwoFreshStoresGiveEqualBytes) {
  Start();
  const std::string first = Ask(json::object()).program->bytes();
  store_ = std::make_shared<cache::MemoryStore>();
  Start();
  EXPECT_EQ(Ask(json::object()).program->bytes(), first);
}

TEST_F(EngineTest, FetchRefusesWhatIsNoDigestAndWhatIsNotThere) {
  Start();
  EXPECT_TRUE(absl::IsInvalidArgument(engine_->Fetch("../../etc/passwd").status()));
  EXPECT_TRUE(absl::IsNotFound(engine_->Fetch(cache::Sha256("nothing").ToString()).status()));
}

TEST_F(EngineTest, ExplainGivesTheLevelsAskedFor) {
  Start();
  v1::ExplainRequest request;
  *request.mutable_model() = FakeRequest("{}").model();
  request.set_level("all");
  EXPECT_THAT(engine_->Explain(request)->texts(), SizeIs(2 + 2 * 3));
  request.set_level("loop");
  request.set_kernel("k1");
  const absl::StatusOr<v1::ExplainResponse> one = engine_->Explain(request);
  ASSERT_TRUE(one.ok()) << one.status();
  ASSERT_THAT(one->texts(), SizeIs(1));
  EXPECT_EQ(one->texts(0).text(), "loop of k1");
  request.set_kernel("k7");
  EXPECT_EQ(engine_->Explain(request).status(),
            absl::NotFoundError("kernel: expected one of k0, k1, got \"k7\""));
  request.set_level("ptx");
  EXPECT_TRUE(absl::IsInvalidArgument(engine_->Explain(request).status()));
  EXPECT_EQ(compiler_->compiles, 0);
}

TEST_F(EngineTest, AnExplainThatNobodyWaitsForTakesNoWorker) {
  Start();
  v1::ExplainRequest request;
  *request.mutable_model() = FakeRequest("{}").model();
  EXPECT_TRUE(absl::IsCancelled(engine_->Explain(request, [] { return true; }).status()));
  EXPECT_EQ(compiler_->plans, 0);
}

TEST_F(EngineTest, ExplainKeySaysWhatDiffers) {
  Start();
  v1::ExplainKeyRequest request;
  *request.mutable_model() = FakeRequest("{}").model();
  EXPECT_FALSE(engine_->ExplainKey(request)->present());
  Ask(json::object());
  const absl::StatusOr<v1::ExplainKeyResponse> stored = engine_->ExplainKey(request);
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_TRUE(stored->present());
  EXPECT_EQ(stored->difference(), "");
  EXPECT_THAT(stored->fields(), HasSubstr("nvrtc[4]=13.0"));
  request.mutable_model()->mutable_seq()->set_max(77);
  const absl::StatusOr<v1::ExplainKeyResponse> other = engine_->ExplainKey(request);
  EXPECT_FALSE(other->present());
  EXPECT_THAT(other->difference(), HasSubstr("0..77"));
  EXPECT_THAT(other->difference(), Not(HasSubstr("arch")));
}

TEST_F(EngineTest, StatusCounts) {
  Start();
  Ask(json::object());
  Ask(json::object());
  const v1::StatusResponse status = engine_->Status();
  EXPECT_EQ(status.cache_hits(), 2u);
  EXPECT_EQ(status.cache_misses(), 2u);
  EXPECT_EQ(status.compiled_kernels(), 2u);
  EXPECT_EQ(status.workers(), 2u);
  EXPECT_EQ(status.nvrtc_version(), "13.0");
  EXPECT_THAT(status.archs(), ElementsAre("sm_80", "sm_90a"));
  EXPECT_GT(status.resident_bytes(), 1u << 20);
  EXPECT_FALSE(status.stopping());
  EXPECT_EQ(status.requests(), 2u);
  EXPECT_EQ(status.program_hits(), 1u);
  EXPECT_EQ(status.workers_lost(), 0u);
}

TEST_F(EngineTest, StoppingRefusesNewWorkAndFinishesTheOld) {
  Start();
  const std::shared_ptr<EventStream> old = engine_->Submit(FakeRequest(Slow("k0", 500).dump()));
  AwaitPlans(1);
  engine_->StopAccepting();
  EXPECT_TRUE(absl::IsUnavailable(Ask(json::object()).status));
  EXPECT_FALSE(engine_->WaitIdle(std::chrono::milliseconds(1)));
  EXPECT_TRUE(Read(*old).status.ok());
}

TEST_F(EngineTest, CancelAllEndsEveryStream) {
  Start({}, 1);
  json config = Slow("k0", 50);
  config["kernels"] = 50;
  const std::shared_ptr<EventStream> running = engine_->Submit(FakeRequest(config.dump()));
  AwaitCompiles(1);
  config["salt"] = "queued";
  const std::shared_ptr<EventStream> waiting = engine_->Submit(FakeRequest(config.dump()));
  engine_->CancelAll();
  EXPECT_TRUE(absl::IsUnavailable(Read(*running).status));
  EXPECT_TRUE(absl::IsUnavailable(Read(*waiting).status));
  EXPECT_LT(compiler_->compiles, 5);
}

TEST_F(EngineTest, StreamsMayOutliveTheEngine) {
  Start();
  const std::shared_ptr<EventStream> stream = engine_->Submit(FakeRequest(Slow("k0", 20).dump()));
  engine_ = nullptr;
  EXPECT_TRUE(absl::IsUnavailable(Read(*stream).status));
}

TEST_F(EngineTest, ASinkThatWantsNoMoreCancels) {
  Start();
  int events = 0;
  const absl::Status status = engine_->Compile(FakeRequest("{}"), [&](const v1::CompileEvent&) {
    ++events;
    return false;
  });
  EXPECT_TRUE(absl::IsCancelled(status));
  EXPECT_EQ(events, 1);
}

// Streams that come and go at any moment, with few distinct keys: nothing hangs, and every one that
// was not cancelled gets a whole answer.
TEST_F(EngineTest, CancelStorm) {
  Start({.queue_limit = 1000}, 4);
  std::vector<std::thread> clients;
  std::atomic<int> whole{0};
  for (int client = 0; client < 8; ++client) {
    clients.emplace_back([&, client] {
      for (int i = 0; i < 40; ++i) {
        json config = Slow("k1", 1);
        config["salt"] = std::to_string((client + i) % 7) + "/" + std::to_string(i / 10);
        const std::shared_ptr<EventStream> stream = engine_->Submit(FakeRequest(config.dump()));
        if ((client * 40 + i) % 3 == 0) {
          for (int events = 0; events < i % 4 && stream->WaitNext(); ++events) {
          }
          stream->Cancel();
          continue;
        }
        const Answer answer = Read(*stream);
        EXPECT_TRUE(answer.status.ok()) << answer.status;
        EXPECT_TRUE(answer.program && answer.report && answer.kernels.size() == 2);
        ++whole;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(whole, 213);
  EXPECT_TRUE(engine_->WaitIdle(std::chrono::seconds(20)));
}

}  // namespace
}  // namespace hackc::server
