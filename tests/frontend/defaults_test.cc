// SPDX-License-Identifier: MIT
// What a config means: one that leaves a key out is one with transformers' default written out, and
// activations, biases and yarn's numbers are what they are there. The defaults stand here a second
// time, taken from the configuration classes of transformers 4.37 to 5.24 and not from the front
// end.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/frontend/architecture_facts.h"
#include "compiler/frontend/frontend.h"
#include "compiler/interp/graph_interpreter.h"
#include "compiler/ir/graph_text.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/support/golden.h"

namespace hackc::frontend {
namespace {

using nlohmann::json;

struct Defaults {
  std::string type, architecture;
  int64_t head_dim;  // with Base's 64 features and 4 heads
  int64_t max_positions;
  bool attention_bias;
};
const std::vector<Defaults> kDefaults = {{"llama", "LlamaForCausalLM", 16, 2048, false},
                                         {"mistral", "MistralForCausalLM", 16, 131072, false},
                                         {"qwen2", "Qwen2ForCausalLM", 16, 32768, true},
                                         {"qwen3", "Qwen3ForCausalLM", 128, 32768, false}};

// No key but those that must be there.
json Base(const Defaults& defaults) {
  return {{"model_type", defaults.type},
          {"architectures", {defaults.architecture}},
          {"vocab_size", 96},
          {"hidden_size", 64},
          {"intermediate_size", 72},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2}};
}

// Long enough for each default window and number of positions to matter.
absl::StatusOr<ir::GraphModule> Graph(const json& config) {
  FrontendOptions options;
  options.seq = {1, int64_t{1} << 19};
  return BuildGraph(config.dump(), options);
}

std::string Text(const json& config) {
  const absl::StatusOr<ir::GraphModule> graph = Graph(config);
  return graph.ok() ? ir::Print(*graph) : std::string(graph.status().message());
}

struct Default {
  std::string types;  // the model types that it holds for; "": all
  json given;         // other keys
  std::string key;    // a JSON pointer
  std::function<json(const Defaults&)> value;
  json other;  // which means something else or is refused
};

std::function<json(const Defaults&)> Is(json value) {
  return [value](const Defaults&) { return value; };
}

std::vector<Default> Table() {
  const auto on = [](const char* key, const json& value) {
    json object = json::object();
    object[key] = value;
    return object;
  };
  const auto yarn = [&](json more) {
    more.update({{"type", "yarn"}, {"factor", 4.0}});
    return on("rope_scaling", more);
  };
  const auto positions = [](const Defaults& d) { return json(d.max_positions); };
  const json nothing = json::object(), untruncated = on("truncate", false);
  const json plain = on("rope_type", "default"), other_theta = on("rope_theta", 5e5);
  const json linear = {{"rope_type", "linear"}, {"factor", 2.0}};
  const json dynamic = {{"rope_type", "dynamic"}, {"factor", 2.0}};
  const json window = {{"sliding_window", 8}, {"max_window_layers", 1}};
  json windowed = window;
  windowed["use_sliding_window"] = true;
  return {
      {"", nothing, "/dtype", Is("bfloat16"), "float32"},
      {"", nothing, "/torch_dtype", Is("bfloat16"), "float32"},
      {"", nothing, "/rms_norm_eps", Is(1e-6), 1e-5},
      {"", nothing, "/tie_word_embeddings", Is(false), true},
      {"", nothing, "/hidden_act", Is("silu"), "gelu"},
      {"", nothing, "/head_dim", [](const Defaults& d) { return json(d.head_dim); }, 32},
      {"llama", nothing, "/num_key_value_heads", Is(4), 2},
      {"", nothing, "/attention_bias", [](const Defaults& d) { return json(d.attention_bias); },
       "both"},
      {"llama qwen3", nothing, "/attention_bias", Is(false), true},
      {"", nothing, "/mlp_bias", Is(false), true},
      // Rope.
      {"", nothing, "/rope_theta", Is(10000.0), 500000.0},
      {"", nothing, "/rope_scaling", Is(plain), linear},
      {"", nothing, "/rope_parameters", Is(plain), linear},
      {"", nothing, "/partial_rotary_factor", Is(1.0), 0.5},
      {"", on("rope_parameters", linear), "/rope_parameters/rope_theta", Is(10000.0), 500000.0},
      {"", on("rope_parameters", linear), "/rope_parameters/partial_rotary_factor", Is(1.0), 0.5},
      {"", on("rope_scaling", linear), "/rope_theta", Is(10000.0), 500000.0},
      {"", on("rope_parameters", other_theta), "/rope_parameters/rope_type", Is("default"),
       "linear"},
      {"", yarn(untruncated), "/max_position_embeddings", positions, 4096},
      {"", yarn(untruncated), "/rope_scaling/original_max_position_embeddings", positions, 4096},
      {"", yarn(nothing), "/rope_scaling/attention_factor", Is(0.1 * std::log(4.0) + 1), 1.0},
      {"", yarn(nothing), "/rope_scaling/truncate", Is(true), false},
      {"", yarn(untruncated), "/rope_scaling/beta_fast", Is(32.0), 16.0},
      {"", yarn(untruncated), "/rope_scaling/beta_slow", Is(1.0), 2.0},
      {"", on("rope_scaling", dynamic), "/max_position_embeddings", positions, 4096},
      // Windows.
      {"mistral", nothing, "/sliding_window", Is(4096), 1024},
      {"qwen2 qwen3", window, "/use_sliding_window", Is(false), true},
      {"qwen2 qwen3",
       nothing,
       "/layer_types",
       Is({"full_attention", "full_attention"}),
       {"sliding_attention", "full_attention"}},
      {"qwen2 qwen3",
       windowed,
       "/layer_types",
       Is({"full_attention", "sliding_attention"}),
       {"sliding_attention", "full_attention"}},
  };
}

TEST(Defaults, AnAbsentKeyIsItsDefault) {
  std::vector<std::string> types;
  for (const Defaults& defaults : kDefaults) types.push_back(defaults.type);
  for (const ArchitectureFacts& facts : AllArchitectures()) {
    EXPECT_THAT(types, testing::Contains(std::string(facts.model_type)))
        << "has no row of defaults here";
  }
  for (const Defaults& defaults : kDefaults) {
    for (const Default& row : Table()) {
      if (row.types.find(row.types.empty() ? "" : defaults.type) == std::string::npos) continue;
      SCOPED_TRACE(defaults.type + row.key + " " + row.given.dump());
      json config = Base(defaults);
      config.update(row.given);
      json absent = config;
      absent.erase(row.key.substr(1));
      ASSERT_TRUE(Graph(absent).ok()) << Graph(absent).status();
      config[json::json_pointer(row.key)] = row.value(defaults);
      EXPECT_EQ(Text(config), Text(absent));
      config[json::json_pointer(row.key)] = row.other;
      EXPECT_NE(Text(config), Text(absent));
    }
  }
}

// Where the class has a number of its own, only null is as many as there are query heads.
TEST(Defaults, NullKeyValueHeadsAreAllHeads) {
  for (const Defaults& defaults : kDefaults) {
    json config = Base(defaults);
    config["num_key_value_heads"] = 4;
    const std::string text = Text(config);
    config["num_key_value_heads"] = nullptr;
    EXPECT_EQ(Text(config), text) << defaults.type;
    config.erase("num_key_value_heads");
    EXPECT_EQ(Text(config), defaults.type == "llama"
                                ? text
                                : "config.num_key_value_heads: missing; expected an integer from "
                                  "1 to 16384");
  }
}

TEST(Defaults, EachBiasIsWhereTheClassHasIt) {
  const std::vector<std::string> qkv = {"q_proj", "k_proj", "v_proj"};
  const std::vector<std::string> attention = {"q_proj", "k_proj", "v_proj", "o_proj"};
  const std::vector<std::string> mlp = {"gate_proj", "up_proj", "down_proj"};
  const std::vector<std::tuple<std::string, std::string, std::vector<std::string>>> table = {
      {"llama", "", {}},          {"llama", "attention_bias", attention},
      {"llama", "mlp_bias", mlp}, {"mistral", "", {}},
      {"qwen2", "", qkv},         {"qwen2", "attention_bias", qkv},
      {"qwen3", "", {}},          {"qwen3", "attention_bias", attention}};
  for (const auto& [type, key, biased] : table) {
    const auto defaults = std::ranges::find(kDefaults, type, &Defaults::type);
    json config = Base(*defaults);
    if (!key.empty()) config[key] = true;
    const absl::StatusOr<ir::GraphModule> graph = Graph(config);
    ASSERT_OK(graph);
    std::vector<std::string> names, expected;
    for (const auto& segment : graph->segments) {
      for (const ir::SourceDecl& source : segment.sources) {
        if (source.weight_name.ends_with(".bias")) names.push_back(source.weight_name);
      }
    }
    for (const std::string& name : biased) {
      const std::string part = biased == mlp ? "mlp." : "self_attn.";
      expected.push_back("model.layers.{layer}." + part + name + ".bias");
    }
    EXPECT_EQ(names, expected) << type << " " << key;
  }
}

TEST(Defaults, ActivationsAreWhatTheirNamesSay) {
  const auto tanh = [](double x) {
    return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  };
  const auto silu = [](double x) { return x / (1 + std::exp(-x)); };
  const auto gelu = [](double x) { return x / 2 * std::erfc(-x / std::numbers::sqrt2); };
  const auto relu = [](double x) { return std::max(x, 0.0); };
  const std::vector<std::pair<std::string, std::function<double(double)>>> table = {
      {"silu", silu},     {"swish", silu}, {"gelu", gelu},
      {"gelu_new", tanh}, {"relu", relu},  {"gelu_pytorch_tanh", tanh}};
  const absl::StatusOr<golden::Model> model = test::LoadGolden("llama");
  ASSERT_OK(model);
  for (const auto& [name, formula] : table) {
    json config = json::parse(model->config_json);
    config["hidden_act"] = name;
    const absl::StatusOr<ir::GraphModule> graph = BuildGraph(config.dump(), {});
    ASSERT_OK(graph);
    std::vector<double> before, after;
    interp::RunInputs run;
    run.symbols = {{"batch", 1}, {"seq", 13}};
    run.inputs = {{"input_ids", model->expected.at("input_ids")}};
    run.weights = model->WeightsByName();
    run.observe = [&](const std::string& value, int, const interp::TensorData& data) {
      if (value == "gate") before = data.values;
      if (value == "activated_gate") after = data.values;
    };
    ASSERT_OK(interp::RunGraph(*graph, run));
    ASSERT_EQ(before.size(), 13 * 72);
    for (size_t i = 0; i < before.size(); ++i) {
      ASSERT_NEAR(after[i], formula(before[i]), 1e-12 * std::max(1.0, std::abs(before[i]))) << name;
    }
    // The formulas differ there: no other is as close.
    for (const auto& [other, another] : table) {
      double difference = 0;
      for (double x : before) difference = std::max(difference, std::abs(formula(x) - another(x)));
      EXPECT_TRUE(formula(1) == another(1) || difference > 1e-4) << name << " " << other;
    }
  }
}

// Yarn as its paper says it, in float64; float32 powers are off by some units of their last place.
TEST(Defaults, YarnNumbersAreTheFormulas) {
  struct Yarn {
    json given;  // beside type, factor 4 and a config of 512 positions
    double original = 512, fast = 32, slow = 1;
    bool truncate = true;
    double scale = 0.1 * std::log(4.0) + 1;
  };
  const std::vector<Yarn> table = {
      {.given = json::object()},
      {.given = {{"original_max_position_embeddings", 128}}, .original = 128},
      {.given = {{"attention_factor", 0.75}}, .scale = 0.75},
      {.given = {{"mscale", 0.5}}},
      {.given = {{"mscale_all_dim", 0.5}}},
      {.given = {{"mscale", 0.7}, {"mscale_all_dim", 1.3}},
       .scale = (0.07 * std::log(4.0) + 1) / (0.13 * std::log(4.0) + 1)},
      {.given = {{"mscale", 0.7}, {"mscale_all_dim", 1.3}, {"attention_factor", 2.0}}, .scale = 2},
      {.given = {{"beta_fast", 5}}, .fast = 5},
      {.given = {{"beta_slow", 7}}, .slow = 7},
      {.given = {{"truncate", true}}},
      {.given = {{"truncate", false}}, .truncate = false},
      {.given = {{"truncate", nullptr}}, .truncate = false},
      {.given = {{"truncate", false}, {"beta_fast", 20}, {"beta_slow", 3}},
       .fast = 20,
       .slow = 3,
       .truncate = false},
      {.given = {{"original_max_position_embeddings", 64}, {"beta_slow", 40}},
       .original = 64,
       .slow = 40}};
  constexpr int kPairs = 24;
  std::set<std::vector<double>> different;
  for (const Yarn& yarn : table) {
    json config = Base(kDefaults[0]);
    config["head_dim"] = 2 * kPairs;
    config["max_position_embeddings"] = 512;
    config["rope_scaling"] = {{"type", "yarn"}, {"factor", 4.0}};
    config["rope_scaling"].update(yarn.given);
    const absl::StatusOr<ir::GraphModule> graph = Graph(config);
    ASSERT_TRUE(graph.ok()) << graph.status() << yarn.given;
    const auto constant =
        std::ranges::find(graph->sources, "inverse_frequencies", &ir::SourceDecl::name);
    ASSERT_NE(constant, graph->sources.end());
    ASSERT_EQ(constant->data.size(), kPairs);
    // The pair that turns so often over the original length: its frequency is 10000^(-pair / 24).
    const auto pair = [&](double turns) {
      return kPairs * std::log(yarn.original / (2 * std::numbers::pi * turns)) / std::log(10000.0);
    };
    double first = pair(yarn.fast), last = pair(yarn.slow);
    if (yarn.truncate) first = std::floor(first), last = std::ceil(last);
    first = std::max(first, 0.0);
    last = std::min(last, 2.0 * kPairs - 1);
    for (int i = 0; i < kPairs; ++i) {
      const double stretched = std::clamp((i - first) / (last - first), 0.0, 1.0);
      const double truth = std::pow(10000.0, -i / double{kPairs}) * (1 - stretched * 3 / 4);
      EXPECT_NEAR(constant->data[i], truth, 2e-6 * truth) << yarn.given << " pair " << i;
    }
    for (const ir::GraphOp& op : graph->segments[0].ops) {
      const auto* rotary = std::get_if<ir::GraphRotaryTable>(&op.op);
      if (rotary == nullptr) continue;
      EXPECT_NEAR(rotary->scale, yarn.scale, 1e-12) << yarn.given;
    }
    different.insert(constant->data);
  }
  EXPECT_EQ(different.size(), 7);  // as many as there are rows with other frequencies
}

}  // namespace
}  // namespace hackc::frontend
