// SPDX-License-Identifier: MIT
// Configs as they are published: each builds, or is refused with the path of a field. The folder is
// not part of the project, so its absence skips.
#include <filesystem>
#include <set>

#include "compiler/frontend/architecture_facts.h"
#include "compiler/frontend/frontend.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/golden.h"

namespace hackc::frontend {
namespace {

TEST(RealConfigs, BuildOrAreRefusedByPath) {
  const std::filesystem::path folder = std::string(HACKC_SOURCE_DIR) + "/../shared/configs";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no folder " << folder;
  // Of a supported model_type, and yet not a plain decoder.
  const std::set<std::string> refused = {"Llama-3.1-405B-FP8.json", "llama3-8B-eagle3.json",
                                         "e5-mistral-7b.json"};
  int built = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const std::string file = entry.path().filename();
    const absl::StatusOr<std::string> text = test::ReadFile(entry.path());
    ASSERT_OK(text);
    const std::string type = nlohmann::json::parse(*text).value("model_type", "");
    const bool supported =
        FindBy(AllArchitectures(), &ArchitectureFacts::model_type, type) != nullptr;
    const absl::StatusOr<ir::GraphModule> graph = BuildGraph(*text, {});
    if (supported && !refused.contains(file)) {
      EXPECT_TRUE(graph.ok()) << file << ": " << graph.status();
      ++built;
    } else {
      EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument) << file;
      EXPECT_EQ(graph.status().message().substr(0, 7), "config.") << file << graph.status();
    }
  }
  EXPECT_GT(built, 40);
}

}  // namespace
}  // namespace hackc::frontend
