// SPDX-License-Identifier: MIT
// Every golden model at every level that a CPU can run: what `hackc-golden` checks
// (tools/golden/check.h), and that what was run is what the texts say.
#include <gmock/gmock.h>

#include "compiler/support/cat.h"
#include "tests/support/golden.h"
#include "tools/golden/bounds.h"
#include "tools/golden/check.h"
#include "tools/opt/unit.h"

namespace hackc::golden {
namespace {

struct Case {
  CheckedLevel level;
  CheckedDType dtype;
};
constexpr Case kCases[] = {
    {CheckedLevel::kGraph, CheckedDType::kFloat64},
    {CheckedLevel::kTensor, CheckedDType::kFloat64},
    {CheckedLevel::kTensor, CheckedDType::kBFloat16},
    {CheckedLevel::kLoop, CheckedDType::kFloat64},
    {CheckedLevel::kTile, CheckedDType::kFloat64},
    {CheckedLevel::kTile, CheckedDType::kFloat16},
    {CheckedLevel::kKernel, CheckedDType::kFloat64},
    {CheckedLevel::kKernel, CheckedDType::kFloat32},
    {CheckedLevel::kKernel, CheckedDType::kBFloat16},
    {CheckedLevel::kKernel, CheckedDType::kFloat16},
};

class GoldenLevels : public testing::TestWithParam<std::tuple<std::string, Case>> {};

TEST_P(GoldenLevels, IsWhatTheLevelAboveSays) {
  const auto& [name, param] = GetParam();
  absl::StatusOr<Model> model = test::LoadGolden(name);
  ASSERT_OK(model);
  const Outcome outcome = CheckLevel(*model, param.level, param.dtype);
  EXPECT_EQ(outcome.problem, "");
  EXPECT_GT(outcome.bound, 0);
  EXPECT_LE(outcome.error, outcome.bound);
}

std::string Underscored(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string NameOf(const testing::TestParamInfo<std::tuple<std::string, Case>>& info) {
  const auto& [name, param] = info.param;
  return Cat(Underscored(name), "_", kCheckedLevelNames[static_cast<size_t>(param.level)], "_",
             kCheckedDTypeNames[static_cast<size_t>(param.dtype)]);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenLevels,
                         testing::Combine(testing::ValuesIn(test::GoldenNames()),
                                          testing::ValuesIn(kCases)),
                         NameOf);

class GoldenModel : public testing::TestWithParam<std::string> {};

// Rounding to storage changes the result by about the dtype's precision, and by something.
TEST_P(GoldenModel, StorageRoundingIsOfTheDTypesSize) {
  absl::StatusOr<Model> model = test::LoadGolden(GetParam());
  ASSERT_OK(model);
  for (const auto& [dtype, storage] : {std::pair{CheckedDType::kFloat32, ir::DType::kF32},
                                       {CheckedDType::kBFloat16, ir::DType::kBF16},
                                       {CheckedDType::kFloat16, ir::DType::kF16}}) {
    const Outcome outcome = CheckLevel(*model, CheckedLevel::kGraph, dtype);
    EXPECT_TRUE(outcome.ok()) << outcome.problem << " " << outcome.error << " " << outcome.bound;
    EXPECT_GT(outcome.error, RoundingError(storage));
  }
}

TEST_P(GoldenModel, EveryTextReadsBack) {
  absl::StatusOr<Model> model = test::LoadGolden(GetParam());
  ASSERT_OK(model);
  for (program::DType dtype : {program::DType::kFloat32, program::DType::kBFloat16}) {
    absl::StatusOr<Plan> plan = PlanFor(*model, dtype);
    ASSERT_OK(plan);
    std::vector<std::string> texts{plan->graph_text, plan->tensor_text};
    for (const KernelSource& kernel : plan->kernels) {
      for (const char* level : {"loop", "tile", "kernel"}) texts.push_back(kernel.ir.at(level));
    }
    for (const std::string& text : texts) {
      absl::StatusOr<opt::Unit> unit = opt::Parse(text);
      ASSERT_TRUE(unit.ok()) << unit.status() << "\n" << text;
      EXPECT_EQ(opt::Print(*unit), text);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenModel, testing::ValuesIn(test::GoldenNames()),
                         [](const auto& info) { return Underscored(info.param); });

}  // namespace
}  // namespace hackc::golden
