// SPDX-License-Identifier: MIT
// Models at their real sizes, for every arch and dtype: each kernel's IR verifies after every pass,
// and reads back as what was printed. Nothing is run.

#include "compiler/frontend/frontend.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/check_schedule.h"
#include "compiler/schedule/choose_schedule.h"
#include "compiler/schedule/target.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/support/golden.h"

namespace hackc {
namespace {

using ir::DType;

class RealModels : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(RealModels, EveryKernelVerifiesAfterEveryPass) {
  const auto& [model, arch] = GetParam();
  auto text = test::ReadFile(std::string(HACKC_SOURCE_DIR) + "/models/" + model);
  ASSERT_OK(text);
  const std::string config = nlohmann::json::parse(*text).at("config").dump();
  auto target = schedule::FindTarget(arch);
  ASSERT_OK(target);
  ir::KernelLimits limits;
  limits.shared_bytes = target->shared_bytes_per_block;
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    for (int64_t past : {0, 2048}) {
      frontend::FrontendOptions options;
      options.dtype = dtype;
      options.batch = {1, 4};
      options.past = {0, past};
      auto graph = frontend::BuildGraph(config, options);
      ASSERT_OK(graph);
      auto lowered = passes::LowerModule(*std::move(graph));
      ASSERT_OK(lowered);
      for (const auto& segment : lowered->loops.segments) {
        for (const ir::LoopLaunch& launch : segment.ops) {
          const ir::Schedule chosen = schedule::ChooseSchedule(launch.fn, *target).value();
          ASSERT_OK(schedule::CheckSchedule(launch.fn, chosen, *target));
          auto kernel = passes::LowerLoop(launch.fn, chosen, limits);
          ASSERT_OK(kernel);
          auto parsed = ir::ParseKernel(ir::Print(kernel->kernel));
          ASSERT_OK(parsed);
          EXPECT_TRUE(ir::SameValue(parsed->fn, kernel->kernel.fn));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RealModels,
                         testing::Combine(testing::Values("qwen2.5-7b.json", "qwen2.5-0.5b.json",
                                                          "tinyllama-1.1b.json"),
                                          testing::Values("sm_80", "sm_90a", "sm_120a")),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param) + std::get<1>(info.param);
                           for (char& c : name) c = isalnum(c) ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace hackc
