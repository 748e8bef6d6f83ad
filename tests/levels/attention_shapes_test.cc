// SPDX-License-Identifier: MIT
// Attention of every width of head and of prompts of a few tokens, for every arch and dtype: a
// schedule is found, and what it gives verifies after every pass. Nothing is run: some of these
// shapes are among the cases of kernel_levels_test.

#include <set>
#include <string>
#include <vector>

#include "compiler/frontend/frontend.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/choose_schedule.h"
#include "compiler/schedule/loop_facts.h"
#include "compiler/schedule/target.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/support/golden.h"

namespace hackc {
namespace {

using ir::DType;

class AttentionShapes : public testing::TestWithParam<DType> {
 protected:
  // Every kernel gets a schedule; those with a softmax are lowered, once with each schedule and
  // shared memory.
  void ExpectCompiles(const nlohmann::json& config, const frontend::Shapes& shapes) {
    frontend::FrontendOptions options{shapes, GetParam()};
    options.layers = 1;
    auto graph = frontend::BuildGraph(config.dump(), options);
    ASSERT_OK(graph);
    auto lowered = passes::LowerModule(*std::move(graph));
    ASSERT_OK(lowered);
    for (const auto& segment : lowered->loops.segments) {
      for (const ir::LoopLaunch& launch : segment.ops) {
        std::set<std::string> seen;
        for (const std::string& arch : schedule::TargetArchs()) {
          SCOPED_TRACE(arch);
          const schedule::Target target = schedule::FindTarget(arch).value();
          const auto chosen = schedule::ChooseSchedule(launch.fn, target);
          ASSERT_OK(chosen);
          if (schedule::FindFacts(launch.fn).softmax_axes.empty()) continue;
          const std::string text = ir::Print(ir::TileFn{launch.fn.fn, *chosen}) +
                                   std::to_string(target.shared_bytes_per_block);
          if (!seen.insert(text).second) continue;
          ASSERT_OK(passes::LowerLoop(launch.fn, *chosen, schedule::LimitsOf(target)));
          ++lowered_;
        }
      }
    }
  }

  int lowered_ = 0;
};

// One layer, two query heads to a key head; nothing but attention depends on the rest.
nlohmann::json HeadsOf(int dim) {
  return {{"model_type", "llama"},
          {"architectures", {"LlamaForCausalLM"}},
          {"hidden_size", 64},
          {"intermediate_size", 64},
          {"num_hidden_layers", 1},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"head_dim", dim},
          {"vocab_size", 64},
          {"hidden_act", "silu"},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 10000.0},
          {"tie_word_embeddings", true},
          {"max_position_embeddings", 4096}};
}

TEST_P(AttentionShapes, HeadsOfAnyWidth) {
  for (const int dim : {72, 80, 96, 100, 112, 120, 144, 192, 256, 384, 512}) {
    SCOPED_TRACE(dim);
    ExpectCompiles(HeadsOf(dim), {.seq = {1, 2048}});
    ExpectCompiles(HeadsOf(dim), {.seq = {1, 8}});
    ExpectCompiles(HeadsOf(dim), {.seq = {1, 128}, .past = {0, 2048}});
    ExpectCompiles(HeadsOf(dim), {.seq = {1, 1}, .past = {0, 2048}});
  }
  EXPECT_GT(lowered_, 100);
}

// What is fused, and so what an attention reads, differs where a prompt has few tokens.
TEST_P(AttentionShapes, PromptsOfAFewTokens) {
  auto tiny = test::ReadFile(std::string(HACKC_SOURCE_DIR) + "/models/tinyllama-1.1b.json");
  ASSERT_OK(tiny);
  const nlohmann::json tiny_llama = nlohmann::json::parse(*tiny).at("config");
  nlohmann::json llama2 = tiny_llama, qwen3 = HeadsOf(128);
  llama2.update({{"hidden_size", 4096},
                 {"intermediate_size", 11008},
                 {"num_attention_heads", 32},
                 {"num_key_value_heads", 32}});
  qwen3.update({{"model_type", "qwen3"},
                {"architectures", {"Qwen3ForCausalLM"}},
                {"hidden_size", 1024},
                {"intermediate_size", 3072},
                {"num_attention_heads", 16},
                {"num_key_value_heads", 8},
                {"vocab_size", 151936}});
  for (const nlohmann::json& config : {tiny_llama, llama2, qwen3}) {
    for (const int64_t batch : {1, 4}) {
      SCOPED_TRACE(config.dump());
      for (int64_t seq = 1; seq <= 9; ++seq) {
        ExpectCompiles(config, {.batch = {batch, batch}, .seq = {seq, seq}});
        if (seq <= 4) ExpectCompiles(config, {.batch = {1, batch}, .seq = {1, seq}});
      }
    }
  }
  EXPECT_GT(lowered_, 50);
}

INSTANTIATE_TEST_SUITE_P(DTypes, AttentionShapes,
                         testing::Values(DType::kF32, DType::kBF16, DType::kF16),
                         [](const auto& info) { return std::string(ir::Name(info.param)); });

}  // namespace
}  // namespace hackc
