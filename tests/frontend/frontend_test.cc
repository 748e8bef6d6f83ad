// SPDX-License-Identifier: MIT
#include "compiler/frontend/frontend.h"

#include <set>

#include "compiler/frontend/architecture_facts.h"
#include "compiler/frontend/layer_kinds.h"
#include "compiler/ir/graph_text.h"
#include "compiler/ir/graph_verify.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/support/golden.h"

namespace hackc::frontend {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

json Config(const std::string& golden) {
  absl::StatusOr<golden::Model> loaded = test::LoadGolden(golden);
  EXPECT_TRUE(loaded.ok());
  return json::parse(loaded->config_json);
}

std::string Text(const json& config, FrontendOptions options = {}) {
  absl::StatusOr<ir::GraphModule> module = BuildGraph(config.dump(), options);
  EXPECT_TRUE(module.ok()) << module.status();
  if (!module.ok()) return "";
  EXPECT_THAT(ir::VerifyGraph(*module), IsEmpty());
  return ir::Print(*module);
}

// Issue flashinfer 996: any number of query heads a key/value head.
TEST(Frontend, AnyIntegerGroupBuilds) {
  for (int group : {1, 5, 6, 7, 16}) {
    json config = Config("llama");
    config["num_attention_heads"] = group * 4;
    config["num_key_value_heads"] = 4;
    EXPECT_THAT(Text(config), HasSubstr("split_heads(%query) {first = 0, heads = " +
                                        std::to_string(group * 4) + ", head_dim = 8}"));
  }
}

// Issue TensorRT-LLM 5912: the explicit head_dim sizes the projections.
TEST(Frontend, ExplicitHeadDimWins) {
  json config = Config("llama");
  config["head_dim"] = 128;
  const std::string text = Text(config);
  EXPECT_THAT(text, HasSubstr("weight %query_weight: bf16[512, 32]"));
  EXPECT_THAT(text, HasSubstr("weight %attention_output_weight: bf16[32, 512]"));
  config.erase("head_dim");
  EXPECT_THAT(Text(config), HasSubstr("weight %query_weight: bf16[32, 32]"));
}

// Issue transformers 38002: a window that is switched off is no window.
TEST(Frontend, UseSlidingWindowFalseIsFullAttention) {
  json config = Config("qwen2");
  config["sliding_window"] = 4;
  EXPECT_THAT(Text(config), Not(HasSubstr("window = 4")));
  config["use_sliding_window"] = true;
  config["max_window_layers"] = 1;
  config.erase("layer_types");
  const std::string text = Text(config);  // layer 0 full, layer 1 sliding
  EXPECT_LT(text.find("window = 0"), text.find("segment layers_from_1"));
  EXPECT_GT(text.find("window = 4"), text.find("segment layers_from_1"));
}

TEST(Frontend, WindowNoShorterThanTheSequenceIsFullAttention) {
  FrontendOptions options;
  options.seq = {1, 8};
  EXPECT_EQ(Text(Config("mistral"), options).find("window = 8"), std::string::npos);
  options.seq = {1, 9};
  EXPECT_NE(Text(Config("mistral"), options).find("window = 8"), std::string::npos);
}

// The mistral class has a window of 4096 where the key is absent, and none where it is null.
TEST(Frontend, AbsentAndNullWindowDiffer) {
  json config = Config("mistral");
  FrontendOptions options;
  options.seq = {1, 8192};
  config["sliding_window"] = nullptr;
  EXPECT_THAT(Text(config, options), HasSubstr("window = 0"));
  config.erase("sliding_window");
  EXPECT_THAT(Text(config, options), HasSubstr("window = 4096"));
}

// Issue candle-vllm 277: equal duplicates, odd vocabulary, 56 / 8 heads. Ling 11, ChatterBox 1:
// both spellings.
TEST(Frontend, RopeSpellings) {
  json config = Config("llama");
  config["vocab_size"] = 32043;
  config["num_attention_heads"] = 56;
  config["num_key_value_heads"] = 8;
  config["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 2.0}, {"rope_theta", 10000.0}};
  const std::string text = Text(config);
  EXPECT_THAT(text, HasSubstr("bf16[32043, 32]"));
  config.erase("rope_parameters");
  config["rope_theta"] = 10000;
  for (const json& scaling :
       {json{{"type", "linear"}, {"factor", 2}}, json{{"rope_type", "linear"}, {"factor", 2.0}},
        json{{"type", "linear"}, {"rope_type", "linear"}, {"factor", 2}}}) {
    config["rope_scaling"] = scaling;
    EXPECT_EQ(Text(config), text) << scaling;
  }
  config["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 2.0}};
  EXPECT_EQ(Text(config), text);
}

// Up to max_position_embeddings the dynamic rope is the plain one.
TEST(Frontend, DynamicRopeIsPlainInItsRange) {
  json config = Config("llama-rope-dynamic");
  FrontendOptions options;
  options.seq = {1, 16};
  const std::string text = Text(config, options);
  EXPECT_THAT(Text(config), HasSubstr("dynamic_factor = 2.0, dynamic_length = 16"));
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 10000.0}};
  EXPECT_EQ(Text(config, options), text);
}

// Beyond it the frequencies follow the length of a call, so neither the length of a sequence beside
// it nor where a prompt is cut may make that.
TEST(Frontend, DynamicRopeBeyondItsRangeTakesAPromptInOneCall) {
  const json config = Config("llama-rope-dynamic");  // 16 positions
  const auto message = [&](ShapeRange batch, ShapeRange seq, ShapeRange past) {
    FrontendOptions options;
    options.batch = batch;
    options.seq = seq;
    options.past = past;
    return std::string(BuildGraph(config.dump(), options).status().message());
  };
  const std::string refused =
      "config.rope_parameters.rope_type: \"dynamic\" follows the length of a call beyond 16 "
      "positions, so a prompt is one call there, without padding; expected batch.max of 1 and "
      "seq.max above past.max, or seq.max + past.max of at most 16; got ";
  EXPECT_EQ(message({1, 2}, {1, 17}, {0, 0}), refused + "batch.max 2, seq.max 17, past.max 0");
  EXPECT_EQ(message({1, 1}, {1, 8}, {0, 9}), refused + "batch.max 1, seq.max 8, past.max 9");
  EXPECT_EQ(message({1, 1}, {1, 9}, {0, 9}), refused + "batch.max 1, seq.max 9, past.max 9");
  EXPECT_EQ(message({1, 1}, {1, 10}, {0, 9}), "");
  EXPECT_EQ(message({1, 1}, {1, 17}, {0, 0}), "");
  EXPECT_EQ(message({1, 4}, {1, 8}, {0, 8}), "");
  EXPECT_EQ(message({1, 4}, {1, 16}, {0, 0}), "");
}

TEST(Frontend, OldAndNewKeysGiveTheSameGraph) {
  json config = Config("llama3-rope");
  const std::string text = Text(config);
  json scaling = config["rope_parameters"];
  config["rope_theta"] = scaling["rope_theta"];
  scaling.erase("rope_theta");
  config["rope_scaling"] = scaling;
  config.erase("rope_parameters");
  EXPECT_EQ(Text(config), text);
}

TEST(Frontend, DTypeOfTheRequestThenOfTheConfigThenBFloat16) {
  json config = Config("llama");
  EXPECT_THAT(Text(config), HasSubstr("bf16[batch, seq, 32]"));
  config["dtype"] = "float16";
  EXPECT_THAT(Text(config), HasSubstr("f16[batch, seq, 32]"));
  config["torch_dtype"] = "float16";
  FrontendOptions options;
  options.dtype = ir::DType::kF32;
  EXPECT_THAT(Text(config, options), Not(HasSubstr("f16[")));
}

TEST(Frontend, TiedHeadReadsTheEmbedding) {
  EXPECT_THAT(Text(Config("llama-tied")), Not(HasSubstr("lm_head")));
  EXPECT_THAT(Text(Config("llama-tied")), HasSubstr("linear(%final_norm, %embedding_table, none)"));
  EXPECT_THAT(Text(Config("llama")), HasSubstr("\"lm_head.weight\""));
}

// The text grows with the kinds of layers, not with their number.
TEST(Frontend, DepthCostsNothing) {
  json config = Config("qwen2");
  config.erase("layer_types");
  config["num_hidden_layers"] = 28;
  const size_t length = Text(config).size();
  config["num_hidden_layers"] = 80;
  EXPECT_EQ(Text(config).size(), length);
  FrontendOptions options;
  options.layers = 3;
  EXPECT_THAT(Text(config, options), HasSubstr("segment layers: repeat 3 from 0 step 1"));
}

TEST(Frontend, AlternatingLayersMakeOneSegmentOfPeriods) {
  json config = Config("qwen2-sliding");
  config["num_hidden_layers"] = 7;
  config["layer_types"] = json::array();
  for (int i = 0; i < 7; ++i) {
    config["layer_types"].push_back(i % 3 == 2 ? "full_attention" : "sliding_attention");
  }
  const std::string text = Text(config);
  EXPECT_THAT(text, HasSubstr("segment layers: repeat 2 from 0 step 3 carry (%x = %embedded)"));
  EXPECT_THAT(text, HasSubstr("\"model.layers.{layer+2}.self_attn.q_proj.weight\""));
  EXPECT_THAT(text, HasSubstr("segment layers_from_6: repeat 1 from 6 step 1"));
}

TEST(Frontend, EveryArchitectureHasAGoldenModel) {
  // Variants of an architecture, which its row does not tell.
  EXPECT_THAT(
      test::GoldenNames(),
      IsSupersetOf({"llama", "llama-mqa-bias", "llama-tied", "llama3-rope", "llama-rope-linear",
                    "llama-rope-dynamic", "llama-rope-dynamic-long", "llama-rope-yarn", "qwen2",
                    "qwen2-tied", "qwen2-sliding", "qwen3", "mistral"}));
  std::set<std::string> shown;
  for (const std::string& name : test::GoldenNames()) {
    shown.insert(Config(name)["model_type"].get<std::string>());
  }
  for (const ArchitectureFacts& facts : AllArchitectures()) {
    EXPECT_TRUE(shown.contains(std::string(facts.model_type)))
        << "tests/data/golden has no " << facts.model_type << ": docs/adding-an-architecture.md";
  }
}

TEST(GroupLayers, CoversEveryLayerOnce) {
  const auto group = [](const std::string& text) {
    std::vector<LayerKind> kinds;
    for (char c : text) kinds.push_back({c == 'S' ? 8 : 0});
    std::vector<std::array<int, 3>> groups;
    for (const LayerGroup& g : GroupLayers(kinds)) {
      groups.push_back({g.first_layer, g.count, g.period});
    }
    return groups;
  };
  using G = std::array<int, 3>;
  EXPECT_THAT(group("F"), ElementsAre(G{0, 1, 1}));
  EXPECT_THAT(group("FFFF"), ElementsAre(G{0, 4, 1}));
  EXPECT_THAT(group("FFFSSSS"), ElementsAre(G{0, 3, 1}, G{3, 4, 1}));
  EXPECT_THAT(group("SFSFSF"), ElementsAre(G{0, 3, 2}));
  EXPECT_THAT(group("SFSFS"), ElementsAre(G{0, 2, 2}, G{4, 1, 1}));
  EXPECT_THAT(group("SSFSSFSS"), ElementsAre(G{0, 2, 3}, G{6, 2, 1}));
}

}  // namespace
}  // namespace hackc::frontend
