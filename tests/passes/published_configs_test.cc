// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <filesystem>

#include "compiler/frontend/frontend.h"
#include "compiler/passes/pipeline.h"
#include "tests/support/golden.h"

namespace hackc::passes {
namespace {

// Published configs, with and without a cache: every module verifies after every pass. The folder
// is not part of the project, so its absence skips.
TEST(PublishedConfigs, ReachKernels) {
  const std::filesystem::path folder = std::string(HACKC_SOURCE_DIR) + "/../shared/configs";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no folder " << folder;
  int lowered = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const absl::StatusOr<std::string> text = test::ReadFile(entry.path());
    ASSERT_OK(text);
    for (int64_t past : {0, 128}) {
      frontend::FrontendOptions options;
      options.seq = {1, 512};
      options.past = {0, past};
      auto graph = frontend::BuildGraph(*text, options);
      if (!graph.ok()) continue;  // refused configs are the front end's tests
      auto module = LowerModule(*graph);
      ASSERT_TRUE(module.ok()) << entry.path() << ": " << module.status();
      ++lowered;
      for (const ir::LoopSegment& segment : module->loops.segments) {
        EXPECT_LE(segment.ops.size(), 16 * static_cast<size_t>(segment.layer_step)) << entry.path();
      }
    }
  }
  EXPECT_GT(lowered, 80);
}

}  // namespace
}  // namespace hackc::passes
