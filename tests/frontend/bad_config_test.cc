// SPDX-License-Identifier: MIT
// Every refusal of the front end with its whole message: the path of the field, what was got, what
// is accepted.
#include <functional>
#include <string>
#include <vector>

#include "compiler/frontend/frontend.h"
#include "compiler/ir/graph_verify.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/support/golden.h"

namespace hackc::frontend {
namespace {

using nlohmann::json;

json Base(const std::string& type) {
  json config = json::parse(R"({
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 96,
    "hidden_size": 64, "intermediate_size": 72, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
    "max_position_embeddings": 4096, "tie_word_embeddings": false, "torch_dtype": "bfloat16"})");
  if (type == "llama") return config;
  config["model_type"] = type;
  config["architectures"] = {type == "qwen2" ? "Qwen2ForCausalLM" : "MistralForCausalLM"};
  return config;
}

struct BadConfig {
  std::string type;
  json patch;  // JSON merge patch: null removes a key
  std::string message;
};

const std::string kSupported =
    "llama (LlamaForCausalLM), mistral (MistralForCausalLM), qwen2 (Qwen2ForCausalLM), "
    "qwen3 (Qwen3ForCausalLM)";

TEST(BadConfig, EachMessageInFull) {
  const std::vector<BadConfig> table = {
      // Sizes.
      {"llama",
       {{"hidden_size", -5}},
       "config.hidden_size: expected an integer from 1 to 1048576, got -5"},
      {"llama",
       {{"hidden_size", 0}},
       "config.hidden_size: expected an integer from 1 to 1048576, got 0"},
      {"llama",
       {{"vocab_size", 1099511627776}},
       "config.vocab_size: expected an integer from 1 to 16777216, got 1099511627776"},
      {"llama",
       {{"vocab_size", 18446744073709551615u}},
       "config.vocab_size: expected an integer from 1 to 16777216, got 18446744073709551615"},
      {"llama",
       {{"intermediate_size", nullptr}},
       "config.intermediate_size: missing; expected an integer from 1 to 1048576"},
      {"llama",
       {{"intermediate_size", "72"}},
       "config.intermediate_size: expected an integer from 1 to 1048576, got \"72\""},
      {"llama",
       {{"num_hidden_layers", 2.5}},
       "config.num_hidden_layers: expected an integer from 1 to 4096, got 2.5"},
      {"llama",
       {{"num_attention_heads", true}},
       "config.num_attention_heads: expected an integer from 1 to 16384, got true"},
      {"qwen2",
       {{"num_attention_heads", 28}, {"hidden_size", 3584}, {"num_key_value_heads", 5}},
       "config.num_key_value_heads: 28 attention heads are not divisible by 5; expected a divisor "
       "of "
       "num_attention_heads"},
      {"qwen2",
       {{"num_key_value_heads", nullptr}},
       "config.num_key_value_heads: missing; expected an integer from 1 to 16384"},
      {"llama",
       {{"hidden_size", 66}},
       "config.num_attention_heads: hidden_size 66 is not divisible by 4; expected a divisor, or "
       "an "
       "explicit head_dim"},
      {"llama",
       {{"head_dim", 15}},
       "config.head_dim: the head dimension is 15; expected an even number, for rope turns pairs"},
      {"llama",
       {{"num_attention_heads", 16384}, {"num_key_value_heads", 1}, {"head_dim", 128}},
       "config.head_dim: num_attention_heads x head dimension is 2097152; expected at most "
       "1048576"},
      {"llama",
       {{"rms_norm_eps", -1e-6}},
       "config.rms_norm_eps: expected a number above 0 and at most 1, got -1e-06"},
      {"llama",
       {{"tie_word_embeddings", 1}},
       "config.tie_word_embeddings: expected true or false, got 1"},
      {"llama",
       {{"attention_bias", "yes"}},
       "config.attention_bias: expected true or false, got \"yes\""},
      // Architecture.
      {"llama",
       {{"model_type", "mamba"}},
       "config.model_type: \"mamba\" is not supported; expected one of " + kSupported},
      {"llama",
       {{"model_type", nullptr}, {"architectures", nullptr}},
       "config.model_type: missing; expected one of " + kSupported},
      {"llama",
       {{"model_type", nullptr}, {"architectures", {"MambaForCausalLM"}}},
       "config.architectures: \"MambaForCausalLM\" is not supported; expected one of " +
           kSupported},
      {"llama",
       {{"architectures", {"LlamaForCausalLMEagle3"}}},
       "config.architectures: \"LlamaForCausalLMEagle3\" is not supported for model_type "
       "\"llama\"; "
       "expected LlamaForCausalLM"},
      {"llama",
       {{"architectures", "LlamaForCausalLM"}},
       "config.architectures: expected a list of one string, got \"LlamaForCausalLM\""},
      {"llama", {{"model_type", 7}}, "config.model_type: expected a string, got 7"},
      // Numbers' formats.
      {"llama",
       {{"torch_dtype", "float64"}},
       "config.torch_dtype: \"float64\" is not supported; expected float32, bfloat16 or float16, "
       "or a "
       "dtype in the request"},
      {"llama",
       {{"dtype", "float16"}},
       "config.torch_dtype: \"bfloat16\" contradicts config.dtype: \"float16\"; expected one of "
       "the two, "
       "or equal values"},
      {"llama",
       {{"quantization_config", {{"quant_method", "fp8"}}}},
       "config.quantization_config: \"fp8\" is not supported; expected float32, bfloat16 or "
       "float16 "
       "weights and no quantization_config"},
      // Parts.
      {"llama",
       {{"hidden_act", "xielu"}},
       "config.hidden_act: \"xielu\" is not supported; expected one of silu, swish, gelu, "
       "gelu_new, "
       "gelu_pytorch_tanh, relu"},
      {"qwen2",
       {{"attention_bias", false}},
       "config.attention_bias: false contradicts the architecture, which has biases"},
      {"llama",
       {{"partial_rotary_factor", 0.5}},
       "config.partial_rotary_factor: 0.5 is not supported; expected 1.0"},
      {"llama",
       {{"num_experts", 8}},
       "config.num_experts: not a key that hackc knows for model_type \"llama\"; it may change the "
       "result, so it is refused. Remove it if it does not apply"},
      {"llama",
       {{"attn_logit_softcapping", 50.0}},
       "config.attn_logit_softcapping: not a key that hackc knows for model_type \"llama\"; it may "
       "change the result, so it is refused. Remove it if it does not apply"},
      {"llama",
       {{"sliding_window", 128}},
       "config.sliding_window: not a key that hackc knows for model_type \"llama\"; it may change "
       "the "
       "result, so it is refused. Remove it if it does not apply"},
      // Windows.
      {"qwen2",
       {{"use_sliding_window", true}},
       "config.sliding_window: missing; use_sliding_window is true, so expected an integer from 1 "
       "to "
       "2147483648"},
      {"qwen2",
       {{"use_sliding_window", true}, {"sliding_window", 8}},
       "config.max_window_layers: missing; use_sliding_window is true, so expected the number of "
       "first "
       "layers with full attention, or layer_types"},
      {"qwen2",
       {{"layer_types", {"full_attention"}}},
       "config.layer_types: expected a list of num_hidden_layers = 4 strings, got "
       "[\"full_attention\"]"},
      {"qwen2",
       {{"num_hidden_layers", 1}, {"layer_types", {"chunked_attention"}}},
       "config.layer_types[0]: expected full_attention or sliding_attention, got "
       "\"chunked_attention\""},
      {"qwen2",
       {{"num_hidden_layers", 1}, {"layer_types", {"sliding_attention"}}},
       "config.layer_types[0]: sliding_attention contradicts use_sliding_window: false"},
      {"mistral",
       {{"sliding_window", 0}},
       "config.sliding_window: expected an integer from 1 to 2147483648, got 0"},
      // Rope.
      {"llama",
       {{"rope_scaling", {{"type", "longrope"}}}},
       "config.rope_scaling.type: \"longrope\" is not supported; expected one of default, linear, "
       "dynamic, llama3, yarn"},
      {"llama",
       {{"rope_scaling", {{"type", "linear"}}}},
       "config.rope_scaling.factor: missing; expected a number above 0 and at most 1e+06"},
      {"llama",
       {{"rope_scaling", {{"type", "linear"}, {"rope_type", "yarn"}, {"factor", 2.0}}}},
       "config.rope_scaling.type: \"linear\" contradicts config.rope_scaling.rope_type: \"yarn\"; "
       "expected one of the two, or equal values"},
      {"llama",
       {{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 5e5}}}},
       "config.rope_theta: 10000.0 contradicts config.rope_parameters.rope_theta: 500000.0; "
       "expected "
       "one of the two, or equal values"},
      {"llama",
       {{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}, {"beta_fast", 32}}}},
       "config.rope_scaling.beta_fast: not a parameter of rope type \"linear\"; it may change the "
       "result, so it is refused"},
      {"llama",
       {{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}},
        {"rope_parameters", {{"type", "linear"}}}},
       "config.rope_scaling.factor: missing in config.rope_parameters; expected it in both or only "
       "one "
       "of rope_parameters and rope_scaling"},
      {"llama",
       {{"rope_scaling", {{"type", "yarn"}, {"factor", 2.0}}},
        {"rope_parameters", {{"rope_type", "yarn"}, {"factor", 2.0}, {"beta_fast", 16}}}},
       "config.rope_parameters.beta_fast: missing in config.rope_scaling; expected it in both or "
       "only one of rope_parameters and rope_scaling"},
      {"llama",
       {{"rope_scaling", {{"factor", 2.0}}},
        {"rope_parameters", {{"rope_type", "linear"}, {"factor", 2.0}}}},
       "config.rope_parameters.rope_type: missing in config.rope_scaling; expected it in both or "
       "only one of rope_parameters and rope_scaling"},
      {"llama",
       {{"rope_theta", nullptr},
        {"rope_scaling", {{"type", "default"}}},
        {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 5e5}}}},
       "config.rope_parameters.rope_theta: missing in config.rope_scaling; expected it in both or "
       "only one of rope_parameters and rope_scaling"},
      {"llama",
       {{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}},
        {"rope_parameters", {{"rope_type", "linear"}, {"factor", 4.0}}}},
       "config.rope_scaling.factor: 2.0 contradicts config.rope_parameters.factor: 4.0; expected "
       "one of the two, or equal values"},
      {"llama",
       {{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}, {"beta_fast", 32}}},
        {"rope_parameters", {{"type", "linear"}, {"factor", 2.0}, {"beta_fast", 32}}}},
       "config.rope_parameters.beta_fast: not a parameter of rope type \"linear\"; it may change "
       "the result, so it is refused"},
      {"llama",
       {{"rope_scaling", "linear"}},
       "config.rope_scaling: expected an object or null, got \"linear\""},
      {"llama",
       {{"rope_scaling",
         {{"type", "llama3"},
          {"factor", 8.0},
          {"low_freq_factor", 4.0},
          {"high_freq_factor", 1.0}}}},
       "config.rope_scaling.high_freq_factor: expected a number above 4 and at most 1e+06, got "
       "1.0"},
      {"llama",
       {{"rope_theta", 0}},
       "config.rope_theta: expected a number above 1 and at most 1e+15, got 0"},
  };
  for (const BadConfig& bad : table) {
    json config = Base(bad.type);
    ASSERT_OK(BuildGraph(config.dump(), {}));
    config.merge_patch(bad.patch);
    const absl::Status status = BuildGraph(config.dump(), {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.patch;
    EXPECT_EQ(status.message(), bad.message) << bad.patch;
  }
}

// A key is the config's own text: it reaches a message escaped and short.
TEST(BadConfig, StrangeKeys) {
  const std::string unknown = ": not a key that hackc knows for model_type \"llama\"; ";
  const std::string no_parameter = ": not a parameter of rope type \"default\"; ";
  for (const auto& [key, shown] : std::vector<std::pair<std::string, std::string>>{
           {"plain_key_2", ".plain_key_2"},
           {std::string(60, 'k'), "." + std::string(60, 'k')},
           {"", R"([""])"},
           {"a.b", R"(["a.b"])"},
           {"layer_types[0]", R"(["layer_types[0]"])"},
           {"a\x1b[31m\n", R"(["a\u001b[31m\n"])"},
           {"caf\u00e9", R"(["caf\u00e9"])"},
           {"\x7f", R"(["\u007f"])"},
           {std::string(500000, 'k'), "[\"" + std::string(56, 'k') + "...]"}}) {
    json config = Base("llama");
    config[key] = 1;
    EXPECT_THAT(std::string(BuildGraph(config.dump(), {}).status().message()),
                testing::StartsWith("config" + shown + unknown));
    config.erase(key);
    config["rope_scaling"] = {{"type", "default"}, {key, 1}};
    EXPECT_THAT(std::string(BuildGraph(config.dump(), {}).status().message()),
                testing::StartsWith("config.rope_scaling" + shown + no_parameter));
  }
}

TEST(BadConfig, Text) {
  const auto message = [](const std::string& text) {
    const absl::Status status = BuildGraph(text, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(message("[1]"), "config: expected a JSON object, got [1]");
  EXPECT_EQ(message("null"), "config: expected a JSON object, got null");
  EXPECT_EQ(message(R"({"hidden_size": 4, "hidden_size": 8})"), "config.hidden_size: given twice");
  EXPECT_EQ(message(R"({"a": [{"b": 1}, {"b": 2, "b": 3}]})"), "config.a[1].b: given twice");
  EXPECT_EQ(message(std::string(100000, '[')), "config: nested deeper than 32 levels");
  EXPECT_EQ(message("{\"a\": " + std::string(50, '[') + std::string(50, ']') + "}"),
            "config: nested deeper than 32 levels");
  EXPECT_EQ(message(std::string(size_t{2} << 20, ' ')),
            "config: expected at most 1048576 bytes of JSON, got 2097152");
  for (const std::string text : {"", "{", "hello", "{\"a\": 1e999}", "{\"a\": \"\xff\"}"}) {
    EXPECT_EQ(message(text).substr(0, 17), "config: not JSON:") << text;
    for (char c : message(text)) EXPECT_TRUE(c >= ' ' && c < 127);
  }
}

TEST(BadConfig, EveryTruncationIsRefused) {
  const std::string text = Base("llama").dump();
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_EQ(BuildGraph(text.substr(0, length), {}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

// Whatever stands in one field: a graph that verifies, or a refusal that starts with a path.
TEST(BadConfig, AnyValueInAnyFieldBuildsOrIsRefused) {
  const std::vector<json> values = {nullptr,
                                    true,
                                    false,
                                    0,
                                    1,
                                    -1,
                                    2,
                                    3,
                                    7,
                                    4096,
                                    1048576,
                                    int64_t{1} << 40,
                                    INT64_MIN,
                                    UINT64_MAX,
                                    0.0,
                                    -0.5,
                                    1.5,
                                    1e300,
                                    -1e300,
                                    5e-324,
                                    "",
                                    "silu",
                                    "linear",
                                    std::string(5000, 'x'),
                                    "\xff",
                                    json::array(),
                                    json::object(),
                                    {1, 2},
                                    {{"type", "yarn"}, {"factor", 1e-300}},
                                    {{"rope_type", 3}},
                                    {{"rope_type", "yarn"},
                                     {"factor", 1e6},
                                     {"beta_fast", 1e-300},
                                     {"original_max_position_embeddings", 1}},
                                    {{"rope_type", "llama3"},
                                     {"factor", 1},
                                     {"low_freq_factor", 1e-300},
                                     {"high_freq_factor", 1e6},
                                     {"original_max_position_embeddings", 1}}};
  int built = 0, refused = 0;
  for (const std::string& name : test::GoldenNames()) {
    const absl::StatusOr<golden::Model> golden = test::LoadGolden(name);
    ASSERT_OK(golden);
    const json config = json::parse(golden->config_json);
    std::vector<std::string> keys = {"rope_scaling", "rope_theta", "torch_dtype",
                                     "quantization_config"};
    for (const auto& [key, value] : config.items()) keys.push_back(key);
    for (const std::string& key : keys) {
      for (const json& value : values) {
        json changed = config;
        changed[key] = value;
        const std::string text = changed.dump(-1, ' ', false, json::error_handler_t::ignore);
        const absl::StatusOr<ir::GraphModule> graph = BuildGraph(text, {});
        if (graph.ok()) {
          ++built;
          EXPECT_THAT(ir::VerifyGraph(*graph), testing::IsEmpty()) << key << value;
        } else {
          ++refused;
          EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
          EXPECT_EQ(graph.status().message().substr(0, 7), "config.") << graph.status();
        }
      }
    }
  }
  EXPECT_GT(built, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(BadOptions, EachMessageInFull) {
  const std::string config = Base("llama").dump();
  const auto message = [&](const std::function<void(FrontendOptions&)>& change) {
    FrontendOptions options;
    change(options);
    return std::string(BuildGraph(config, options).status().message());
  };
  EXPECT_EQ(message([](auto& o) { o.layers = 5; }),
            "layers: expected at most 4 (config.num_hidden_layers), got 5");
  EXPECT_EQ(message([](auto& o) { o.layers = -1; }),
            "layers: expected 0 (all) or a positive number, got -1");
  EXPECT_EQ(message([](auto& o) {
              o.seq = {8, 4};
            }),
            "seq: expected 1 <= min <= max <= 1048576, got 8..4");
  EXPECT_EQ(message([](auto& o) {
              o.batch = {0, 4};
            }),
            "batch: expected 1 <= min <= max <= 1048576, got 0..4");
  EXPECT_EQ(message([](auto& o) {
              o.past = {0, int64_t{1} << 40};
            }),
            "past: expected 0 <= min <= max <= 1048576, got 0..1099511627776");
  EXPECT_EQ(message([](auto& o) {
              o.batch = {1, 1024};
              o.seq = {1, 1 << 20};
            }),
            "seq: expected batch.max x seq.max of at most 16777216 tokens, got 1073741824");
  EXPECT_EQ(message([](auto& o) { o.dtype = ir::DType::kI32; }),
            "dtype: expected float32, bfloat16 or float16, got i32");
}

}  // namespace
}  // namespace hackc::frontend
