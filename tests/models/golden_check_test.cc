// SPDX-License-Identifier: MIT
// The check of golden models sees what it is for, and says so as the command line promises.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "tests/support/golden.h"
#include "tools/golden/check.h"
#include "tools/golden/gpu/golden.h"
#include "tools/golden/program_run.h"

namespace hackc::golden {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

Model Llama() {
  absl::StatusOr<Model> model = test::LoadGolden("llama");
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

TEST(GoldenCheck, AWrongWeightOrTruthFails) {
  Model model = Llama();
  model.weights.at("model.layers.1.mlp.up_proj.weight").values[7] *= 1.01;
  EXPECT_GT(CheckLevel(model, CheckedLevel::kGraph, CheckedDType::kFloat64).error, 2e-6);
  model = Llama();
  model.expected.at("hidden_1").values[40] += 1e-4;
  EXPECT_FALSE(CheckLevel(model, CheckedLevel::kGraph, CheckedDType::kFloat64).ok());
  model = Llama();
  model.expected.at("step_logits").values[3 * 96] += 1e-3;
  EXPECT_FALSE(CheckLevel(model, CheckedLevel::kGraph, CheckedDType::kFloat64).ok());
  model = Llama();
  model.weights.erase("model.norm.weight");
  EXPECT_THAT(CheckLevel(model, CheckedLevel::kKernel, CheckedDType::kFloat32).problem,
              HasSubstr("no weight model.norm.weight"));
}

// Runs the prompt and one token of llama on `plan`; the last logits.
absl::StatusOr<interp::TensorData> TwoCalls(const Model& model, const Plan& plan) {
  absl::StatusOr<std::unique_ptr<ProgramRun>> run = ProgramRun::Create(
      plan, opt::Level::kKernel, interp::Arithmetic::kExact, model.WeightsByName());
  if (!run.ok()) return run.status();
  std::vector<Call> calls = TrueCalls(model);
  absl::StatusOr<Tensors> prompt =
      (*run)->Run("prefill", {{"batch", 1}, {"seq", 13}, {"past", 0}}, InputsOf(calls[0]));
  if (!prompt.ok()) return prompt.status();
  absl::StatusOr<Tensors> token =
      (*run)->Run("decode", {{"batch", 1}, {"seq", 1}, {"past", 13}}, InputsOf(calls[1]));
  if (!token.ok()) return token.status();
  return token->at("logits");
}

// Each fault is of a kind that the kernels alone cannot show.
TEST(ProgramRun, FaultsOfTheProgramShow) {
  const Model model = Llama();
  const absl::StatusOr<Plan> right = PlanFor(model, program::DType::kBFloat16);
  ASSERT_OK(right);
  const absl::StatusOr<interp::TensorData> truth = TwoCalls(model, *right);
  ASSERT_OK(truth);
  const auto differs = [&](const char* fault, const Plan& plan) {
    const absl::StatusOr<interp::TensorData> got = TwoCalls(model, plan);
    EXPECT_TRUE(!got.ok() || Difference(got->values, truth->values) > 1e-9) << fault;
  };
  Plan plan = *right;
  for (program::Buffer& buffer : plan.program.buffers) {
    if (buffer.kind == program::Buffer::Kind::kWorkspace) buffer.offset.args.clear();
    if (buffer.kind == program::Buffer::Kind::kWorkspace) buffer.offset = {};
  }
  differs("all of the workspace at one place", plan);
  plan = *right;
  for (program::EntryPoint& entry : plan.program.entry_points) {
    for (program::Step& step : entry.steps) {
      if (step.repeat_count > 0) --step.repeat_count;
    }
  }
  differs("a layer less", plan);
  plan = *right;
  for (program::Buffer& buffer : plan.program.buffers) {
    if (buffer.kind == program::Buffer::Kind::kState) buffer.repeat_count = 0;
  }
  differs("one cache for all layers", plan);
  plan = *right;
  for (program::Kernel& kernel : plan.program.kernels) kernel.grid[0] = {.value = 1};
  differs("a grid of one block", plan);
  plan = *right;
  plan.program.prepare.clear();
  differs("nothing is prepared", plan);
}

// Nothing relies on zeros in the workspace, nor on what an earlier run left.
TEST(ProgramRun, TheSameCallTwiceGivesTheSame) {
  const Model model = Llama();
  const absl::StatusOr<Plan> plan = PlanFor(model, program::DType::kFloat32);
  ASSERT_OK(plan);
  auto run = ProgramRun::Create(*plan, opt::Level::kKernel, interp::Arithmetic::kHardware,
                                model.WeightsByName());
  ASSERT_OK(run);
  std::vector<std::vector<double>> logits;
  for (int64_t seq : {13, 4, 13}) {
    interp::TensorData ids = TrueCalls(model)[0].ids;
    ids.shape[1] = seq;
    ids.values.resize(seq);
    auto outputs =
        (*run)->Run("prefill", {{"batch", 1}, {"seq", seq}, {"past", 0}}, InputsOf({ids}));
    ASSERT_OK(outputs);
    logits.push_back(outputs->at("logits").values);
  }
  EXPECT_EQ(logits[2], logits[0]);
}

struct Ran {
  int code;
  std::string out, err;
};
Ran Golden(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  const int code = RunGolden(arguments, out, err);
  return {code, out.str(), err.str()};
}

const std::string kFolder = std::string(HACKC_SOURCE_DIR) + "/tests/data/golden";

TEST(GoldenCommand, ALineForEachCheck) {
  const Ran ran = Golden({kFolder + "/llama/", "--level=graph,kernel", "--dtype=float32"});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, StartsWith("llama                graph  float32   error "));
  EXPECT_THAT(ran.out, HasSubstr("\nllama                kernel float32   error "));
  EXPECT_THAT(ran.out, HasSubstr("  ok\n"));
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 2);
}

TEST(GoldenCommand, AFolderOfModels) {
  const Ran ran = Golden({"--level", "graph", kFolder});  // a folder after a list is no level
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), test::GoldenNames().size());
}

TEST(GoldenCommand, WhatIsNotKnownFailsAndSaysWhy) {
  const fs::path mine = fs::path(testing::TempDir()) / absl::StrCat("golden_check.", getpid());
  const fs::path folder = mine / "unknown_architecture";
  fs::create_directories(mine);
  fs::copy(kFolder + "/llama", folder);
  fs::permissions(folder / "config.json", fs::perms::owner_all);
  std::ofstream(folder / "config.json") << R"({"model_type": "rwkv", "hidden_size": 64})";
  const Ran ran = Golden({folder.string(), kFolder + "/qwen2", "--level=graph"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out,
              StartsWith("unknown_architecture -      -         FAILED: config.model_type: "
                         "\"rwkv\" is not supported; expected one of "));
  EXPECT_THAT(ran.out, HasSubstr("\nqwen2                graph  float64   error "));
  fs::resize_file(folder / "expected.safetensors", 100);
  EXPECT_THAT(Golden({folder.string()}).out, HasSubstr("expected.safetensors: "));
  fs::remove_all(folder);
  EXPECT_THAT(Golden({folder.string()}).out, HasSubstr("config.json: cannot be read\n"));
  fs::remove_all(mine);
}

TEST(GoldenCommand, WrongUse) {
  EXPECT_EQ(Golden({}).code, 2);
  EXPECT_EQ(Golden({kFolder, "--level=hardware"}).code, 2);
  EXPECT_EQ(Golden({kFolder, "--dtype=int8"}).code, 2);
  const Ran ran = Golden({kFolder + "/llama", "--level=gpu", "--dtype=float64"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("FAILED: float64 is no dtype of storage\n"));
}

}  // namespace
}  // namespace hackc::golden
