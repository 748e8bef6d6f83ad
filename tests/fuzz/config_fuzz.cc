// SPDX-License-Identifier: MIT
// A model's config.json, any bytes: refused with INVALID_ARGUMENT that names a field, or a graph
// that verifies, prints as a fixed point, has one key, and, when it is tiny, lowers to a whole
// program. An input that opens with `!` and a byte takes the request's options from that byte.
#include <algorithm>
#include <iterator>

#include "compiler/compile.h"
#include "compiler/frontend/architecture_facts.h"
#include "compiler/ir/graph_text.h"
#include "compiler/support/cat.h"
#include "nlohmann/json.hpp"
#include "tests/fuzz/fuzz_target.h"

namespace hackc::fuzz {
namespace {

using nlohmann::json;

CompileRequest RequestOf(std::string_view input) {
  CompileRequest request;
  request.seq = {1, 16};
  if (input.size() >= 2 && input[0] == '!') {
    const auto bits = static_cast<unsigned char>(input[1]);
    request.dtype = static_cast<program::DType>(bits % 4);
    if (bits & 4) request.past = {0, 9};
    if (bits & 8) request.batch = {1, 3};
    if (bits & 16) request.seq = {1, 1};
    if (bits & 32) request.seq = {7, 33};
    if (bits & 64) request.layers = 1;
    input.remove_prefix(2);
  }
  request.config_json = std::string(input);
  return request;
}

// Front end: a refusal, or fields that come out the same twice.
bool Accepted(const CompileRequest& request, KeyFields& fields) {
  absl::StatusOr<KeyFields> first = ProgramKeyFields(request);
  if (!first.ok()) {
    if (first.status().code() == absl::StatusCode::kInvalidArgument &&
        !first.status().message().empty()) {
      return false;
    }
    Violation("a bad description is INVALID_ARGUMENT", first.status().ToString());
  }
  const absl::StatusOr<KeyFields> second = ProgramKeyFields(request);
  if (!second.ok() || *second != *first) Violation("a key is the same twice", request.config_json);
  fields = *std::move(first);
  return true;
}

// Elements of the largest weight, about; passes do not care, but 4096 layers of 16 kinds take their
// time.
bool IsTiny(const ir::GraphModule& graph) {
  size_t ops = 0;
  for (const auto& segment : graph.segments) ops += segment.ops.size();
  return ops <= 80;
}

std::vector<json*> Places(json& root) {
  std::vector<json*> places = {&root};
  for (size_t i = 0; i < places.size() && i < 500; ++i) {
    if (places[i]->is_structured()) {
      for (json& child : *places[i]) places.push_back(&child);
    }
  }
  return places;
}

json InterestingValue(Random& random) {
  static const std::vector<json> kValues = [] {
    std::vector<json> values = {nullptr,
                                true,
                                false,
                                "",
                                "gelu",
                                "silu",
                                "linear",
                                "dynamic",
                                "yarn",
                                "llama3",
                                "default",
                                "float16",
                                "sliding_attention",
                                "full_attention",
                                json::array(),
                                json::object(),
                                0.5,
                                -0.0,
                                1e-45,
                                1e308,
                                1e-5,
                                10000.0};
    for (const frontend::ArchitectureFacts& facts : frontend::AllArchitectures()) {
      values.push_back(facts.model_type);
      values.push_back(facts.architecture);
    }
    return values;
  }();
  if (random.OneIn(2)) return InterestingInteger(random);
  return kValues[random.Below(kValues.size())];
}

constexpr const char* kKeys[] = {"head_dim",
                                 "num_key_value_heads",
                                 "num_attention_heads",
                                 "hidden_size",
                                 "intermediate_size",
                                 "num_hidden_layers",
                                 "vocab_size",
                                 "attention_bias",
                                 "mlp_bias",
                                 "tie_word_embeddings",
                                 "sliding_window",
                                 "use_sliding_window",
                                 "max_window_layers",
                                 "layer_types",
                                 "rope_theta",
                                 "rope_scaling",
                                 "rope_parameters",
                                 "rope_type",
                                 "type",
                                 "factor",
                                 "original_max_position_embeddings",
                                 "low_freq_factor",
                                 "high_freq_factor",
                                 "beta_fast",
                                 "beta_slow",
                                 "attention_factor",
                                 "mscale",
                                 "mscale_all_dim",
                                 "max_position_embeddings",
                                 "rms_norm_eps",
                                 "hidden_act",
                                 "torch_dtype",
                                 "dtype",
                                 "model_type",
                                 "architectures",
                                 "partial_rotary_factor",
                                 "text_config"};

std::string MutateConfig(const std::string& text, Random& random) {
  json config = json::parse(text, nullptr, false);
  if (config.is_discarded()) return MutateText(text, random);
  for (size_t rounds = 1 + random.Below(3); rounds > 0; --rounds) {
    std::vector<json*> places = Places(config);
    json& place = *places[random.Below(places.size())];
    switch (random.Below(5)) {
      case 0: place = InterestingValue(random); break;
      case 1:
        if (place.is_structured() && !place.empty()) {
          place.erase(std::next(place.begin(), static_cast<int>(random.Below(place.size()))));
        }
        break;
      case 2:
        if (place.is_object()) {
          place[kKeys[random.Below(std::size(kKeys))]] = InterestingValue(random);
        }
        break;
      case 3:
        if (config.is_object()) {
          config[kKeys[random.Below(std::size(kKeys))]] =
              random.OneIn(2) ? InterestingValue(random) : *places[random.Below(places.size())];
        }
        break;
      default: {
        json copy = place;
        if (place.is_array() && place.size() < 100) place.push_back(copy);
        if (place.is_number()) place = static_cast<int64_t>(random.Below(41));
      }
    }
  }
  return config.dump(1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string Mutate(std::string input, Random& random) {
  std::string options;
  if (input.size() >= 2 && input[0] == '!') {
    options = input.substr(0, 2);
    input.erase(0, 2);
  }
  if (random.OneIn(8)) options = std::string("!") + static_cast<char>(random.Bits());
  return options + MutateConfig(input, random);
}

}  // namespace hackc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hackc;        // NOLINT
  using namespace hackc::fuzz;  // NOLINT
  const CompileRequest request =
      RequestOf(std::string_view(reinterpret_cast<const char*>(data), size));
  KeyFields fields;
  if (!Accepted(request, fields)) return 0;
  const auto text = std::find_if(fields.begin(), fields.end(),
                                 [](const auto& field) { return field.first == "graph"; });
  if (text == fields.end()) Violation("a key holds the graph's text", request.config_json);
  const absl::StatusOr<ir::GraphModule> graph = ir::ParseGraph(text->second);
  if (!graph.ok() || ir::Print(*graph) != text->second) {
    Violation("a graph prints as a fixed point",
              Cat(graph.status().ToString(), "\n", text->second));
  }
  // Passes take a hundred times as long as the front end: one input in some is lowered.
  if (!IsTiny(*graph) || std::hash<std::string>()(request.config_json) % 128 != 0) return 0;
  const absl::StatusOr<Plan> plan = PlanProgram(request);
  if (!plan.ok()) Violation("a graph lowers to a program", plan.status().ToString());
  return 0;
}
