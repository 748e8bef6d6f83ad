// SPDX-License-Identifier: MIT
// Replay files of the compiler in this process, as `--local` and every worker use it.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "compiler/support/replay.h"
#include "server/local.h"
#include "server/replay.h"
#include "tools/opt/case_file.h"
#include "tools/opt/opt.h"

namespace hackc::server {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// Fails as its request's name says.
class Failing : public CompilerBackend {
 public:
  absl::StatusOr<KeyFields> ProgramKeyFields(const CompileRequest& request) override {
    if (request.name == "front end") throw std::runtime_error("no such layer");
    return KeyFields{{"kind", "program"}};
  }
  absl::StatusOr<Plan> PlanProgram(const CompileRequest& request) override {
    if (request.name == "refused") return absl::InvalidArgumentError("config.x: expected y");
    if (request.name == "untold") return absl::InternalError("somewhere");
    return WithReplayTarget(
        Replayable("split_axes", absl::StrCat("pass split_axes: ", request.name),
                   absl::StrCat("hackc tile 1\n# ", request.name, "\n")),
        "sm_80");
  }
  absl::StatusOr<CompiledKernel> CompileKernel(const KernelSource&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<Reference> ReferenceKernel(const std::string&, const std::string&) override {
    return absl::InternalError("no reference");
  }
  absl::StatusOr<Rates> TargetRates(const std::string&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::string> NvrtcVersion() override { return "13.0"; }
  absl::StatusOr<std::vector<std::string>> SupportedArchs() override {
    return std::vector<std::string>{"sm_90a"};
  }
};

std::string Read(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ReplayFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / absl::StrCat("replay_", getpid());
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Message(const std::string& name) {
    const auto backend = WithReplayFiles(std::make_shared<Failing>(), Options());
    CompileRequest request;
    request.name = name;
    return std::string(backend->PlanProgram(request).status().message());
  }
  ReplayOptions Options() const { return {.directory = folder_.string()}; }
  // The only file's text.
  std::string Left() const { return Files().size() == 1 ? Read(Files()[0]) : "not one file"; }
  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_)) files.push_back(entry.path());
    return files;
  }

  fs::path folder_;
};

TEST_F(ReplayFiles, TheMessageNamesAFileThatSaysWhatFailed) {
  const std::string message = Message("overhang");
  ASSERT_EQ(Files().size(), 1u);
  EXPECT_EQ(message, absl::StrCat("pass split_axes: overhang\nto see it again: hackc-opt ",
                                  Files()[0].string()));
  EXPECT_EQ(Read(Files()[0]),
            "# pass: split_axes  verify: yes  target: sm_80\nhackc tile 1\n# overhang\n");
  Message("overhang");
  EXPECT_EQ(Files().size(), 1u) << "the same failure again";
}

TEST_F(ReplayFiles, WhatACallerCausesLeavesNone) {
  EXPECT_EQ(Message("refused"), "config.x: expected y");
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(ReplayFiles, TheFolderHoldsTheNewest) {
  for (int i = 0; i < 40; ++i) Message(absl::StrCat("failure ", i));
  EXPECT_EQ(Files().size(), 32u);
  std::string all;
  for (const fs::path& path : Files()) all += Read(path);
  EXPECT_THAT(all, HasSubstr("# failure 39\n"));
}

TEST_F(ReplayFiles, ALongMessageKeepsThePath) {
  const std::string message = Message(std::string(100'000, 'x'));
  EXPECT_LT(message.size(), 1500u);
  EXPECT_THAT(message, HasSubstr("xxx [...]\nto see it again: hackc-opt "));
}

TEST_F(ReplayFiles, AFolderThatCannotBeCostsTheFileOnly) {
  std::ofstream(folder_) << "a file in its place";
  EXPECT_EQ(Message("overhang"),
            absl::StrCat("pass split_axes: overhang\nno replay file in ", folder_.string()));
}

TEST_F(ReplayFiles, OfTheEngineInOneProcessLieInItsCache) {
  LocalOptions options{.workers = 1, .cache_dir = folder_.string()};
  options.backend = std::make_shared<Failing>();
  absl::StatusOr<std::unique_ptr<Engine>> engine = OpenLocalEngine(options);
  ASSERT_TRUE(engine.ok()) << engine.status();
  v1::CompileRequest request;
  request.mutable_model()->set_name("overhang");
  (*request.mutable_model()->mutable_config()->mutable_fields())["x"].set_number_value(1);
  const absl::Status status =
      (*engine)->Compile(request, [](const v1::CompileEvent&) { return true; });
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("to see it again: hackc-opt ", folder_.string(), "/replay/")));
}

TEST_F(ReplayFiles, WithoutIrTheCallItselfIsLeft) {
  const auto backend = WithReplayFiles(std::make_shared<Failing>(),
                                       {.directory = folder_.string(), .pass_plugin = "/p.so"});
  CompileRequest request{.name = "untold", .config_json = "{\"model_type\": \"llama\"}"};
  EXPECT_THAT(std::string(backend->PlanProgram(request).status().message()),
              StartsWith("somewhere\nto see it again: hackc-opt --pass-plugin /p.so "));
  EXPECT_EQ(Left(),
            "# pass: program  target: sm_90a  batch: 1..1  seq: 1..2048  past: 0..0\n"
            "{\"model_type\": \"llama\"}\n");
  fs::remove_all(folder_);
  request.name = "front end";
  request.dtype = program::DType::kFloat16;
  request.batch = {1, 4};
  request.seq = {2, 7};
  request.past = {0, 64};
  request.page_size = 16;
  request.layers = 2;
  request.last_logits = true;
  const absl::Status thrown = backend->ProgramKeyFields(request).status();
  EXPECT_TRUE(absl::IsInternal(thrown)) << thrown;
  EXPECT_THAT(std::string(thrown.message()), StartsWith("no such layer\nto see it again: "));
  EXPECT_EQ(Left(),
            "# pass: program  target: sm_90a  dtype: float16  batch: 1..4  seq: 2..7  past: 0..64  "
            "page_size: 16  layers: 2  last_logits: yes\n{\"model_type\": \"llama\"}\n");
  // hackc-opt reads it as the same request.
  const auto read = opt::ReadCase(Left());
  ASSERT_TRUE(read.ok()) << read.status();
  const CompileRequest& again = read->request;
  EXPECT_EQ(again.dtype, request.dtype);
  EXPECT_EQ(again.batch.max, 4);
  EXPECT_EQ(again.seq.min, 2);
  EXPECT_EQ(again.past.max, 64);
  EXPECT_EQ(again.page_size, 16);
  EXPECT_EQ(again.layers, 2);
  EXPECT_TRUE(again.last_logits);
  fs::remove_all(folder_);
  EXPECT_FALSE(backend->ReferenceKernel("hackc loop 1\n", "sm_80").ok());
  EXPECT_EQ(Left(), "# pass: reference  target: sm_80\nhackc loop 1\n");
}

TEST_F(ReplayFiles, OfACallThatLostItsWorker) {
  v1::worker::Request request;
  request.mutable_kernel()->mutable_kernel()->set_arch("sm_90a");
  request.mutable_kernel()->mutable_kernel()->set_entry("hackc_k");
  request.mutable_kernel()->set_cuda("text");
  const absl::Status lost = absl::InternalError("the worker was lost");
  EXPECT_THAT(std::string(LeaveReplay(lost, request, Options()).message()),
              StartsWith("the worker was lost\nto see it again: hackc-opt "));
  EXPECT_EQ(Left(), "# pass: nvrtc  target: sm_90a  entry: hackc_k\ntext");
  request.mutable_describe();
  EXPECT_EQ(LeaveReplay(lost, request, Options()), lost);
}

int RunFile(const std::string& text, std::string& said) {
  std::istringstream in(text);
  std::ostringstream out, err;
  const int code = opt::RunOpt({}, in, out, err);
  said = err.str();
  return code;
}

// Calls of the compiler that hackc-opt repeats: what is sound ends well.
TEST_F(ReplayFiles, CallsAreRepeatedByHackcOpt) {
  CompileRequest request;
  request.config_json = Read(fs::path(HACKC_SOURCE_DIR) / "tests/data/golden/llama/config.json");
  request.seq = {1, 4};
  const absl::StatusOr<Plan> plan = PlanProgram(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::string said;
  const std::string config = "# pass: program  seq: 1..4  target: sm_90a\n" + request.config_json;
  EXPECT_EQ(RunFile(config, said), opt::kExitOk) << said;
  EXPECT_EQ(RunFile("# pass: program  target: sm_90a\n" + plan->graph_text, said), opt::kExitOk)
      << said;
  EXPECT_EQ(RunFile("# pass: reference\n" + plan->kernels[0].ir.at("loop"), said), opt::kExitOk)
      << said;
  EXPECT_EQ(RunFile("# pass: reference\nhackc loop 2\n", said), opt::kExitWrong);
  EXPECT_EQ(RunFile("# pass: program  layers: -1\n" + request.config_json, said), opt::kExitWrong);
  EXPECT_THAT(said, HasSubstr("layers"));
}

// The whole way for a text that NVRTC does not take.
TEST_F(ReplayFiles, OfNvrtcIsRunByHackcOpt) {
  const auto backend = WithReplayFiles(LinkedCompiler(), Options());
  if (!backend->NvrtcVersion().ok()) GTEST_SKIP() << backend->NvrtcVersion().status();
  KernelSource source;
  source.kernel.name = "broken";
  source.kernel.entry = "hackc_broken";
  source.kernel.arch = "sm_90a";
  source.cuda = "extern \"C\" __global__ void hackc_broken() { undeclared(); }\n";
  const std::string message(backend->CompileKernel(source).status().message());
  EXPECT_THAT(message, HasSubstr("undeclared"));
  EXPECT_THAT(Left(), StartsWith("# pass: nvrtc  target: sm_90a  entry: hackc_broken\n"));
  std::istringstream in;
  std::ostringstream out, err;
  EXPECT_EQ(opt::RunOpt({Files()[0].string()}, in, out, err), opt::kExitInternal);
  EXPECT_THAT(err.str(), AllOf(StartsWith("hackc-opt: "), HasSubstr("undeclared")));
}

}  // namespace
}  // namespace hackc::server
