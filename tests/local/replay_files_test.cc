// SPDX-License-Identifier: MIT
// Replay files of the compiler in this process, as `--local` and every worker use it.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "compiler/support/replay.h"
#include "server/local.h"
#include "server/replay.h"
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
  absl::StatusOr<KeyFields> ProgramKeyFields(const CompileRequest&) override {
    return KeyFields{{"kind", "program"}};
  }
  absl::StatusOr<Plan> PlanProgram(const CompileRequest& request) override {
    if (request.name == "refused") return absl::InvalidArgumentError("config.x: expected y");
    absl::Status status = Replayable("split_axes", absl::StrCat("pass split_axes: ", request.name),
                                     absl::StrCat("hackc tile 1\n# ", request.name, "\n"));
    SetReplayTarget(status, "sm_80");
    return status;
  }
  absl::StatusOr<CompiledKernel> CompileKernel(const KernelSource&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<Reference> ReferenceKernel(const std::string&, const std::string&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<Rates> TargetRates(const std::string&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::string> NvrtcVersion() override { return "13.0"; }
  absl::StatusOr<std::vector<std::string>> SupportedArchs() override {
    return std::vector<std::string>{"sm_90a"};
  }
};

class ReplayFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / absl::StrCat("replay_", getpid());
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Message(const std::string& name) {
    const auto backend = WithReplayFiles(std::make_shared<Failing>(), folder_.string());
    CompileRequest request;
    request.name = name;
    return std::string(backend->PlanProgram(request).status().message());
  }
  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_)) files.push_back(entry.path());
    return files;
  }

  fs::path folder_;
};

std::string Read(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

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

// The whole way for a text that NVRTC does not take.
TEST_F(ReplayFiles, OfNvrtcIsRunByHackcOpt) {
  const auto backend = WithReplayFiles(LinkedCompiler(), folder_.string());
  if (!backend->NvrtcVersion().ok()) GTEST_SKIP() << backend->NvrtcVersion().status();
  KernelSource source;
  source.kernel.name = "broken";
  source.kernel.entry = "hackc_broken";
  source.kernel.arch = "sm_90a";
  source.cuda = "extern \"C\" __global__ void hackc_broken() { undeclared(); }\n";
  const std::string message(backend->CompileKernel(source).status().message());
  EXPECT_THAT(message, AllOf(StartsWith("NVRTC, kernel broken: "), HasSubstr("undeclared")));
  ASSERT_EQ(Files().size(), 1u);
  EXPECT_THAT(Read(Files()[0]),
              StartsWith("# pass: nvrtc  verify: yes  target: sm_90a  entry: hackc_broken\n"));
  std::istringstream in;
  std::ostringstream out, err;
  EXPECT_EQ(opt::RunOpt({Files()[0].string()}, in, out, err), opt::kExitInternal);
  EXPECT_THAT(err.str(), AllOf(StartsWith("hackc-opt: "), HasSubstr("undeclared")));
}

}  // namespace
}  // namespace hackc::server
