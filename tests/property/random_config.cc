// SPDX-License-Identifier: MIT
#include "tests/property/random_config.h"

#include <initializer_list>
#include <iterator>
#include <random>

#include "compiler/frontend/architecture_facts.h"
#include "nlohmann/json.hpp"

namespace hackc::property {
namespace {

using nlohmann::json;

class Picker {
 public:
  explicit Picker(unsigned seed) : engine_(seed) {}
  int From(std::initializer_list<int> values) {
    return *std::next(values.begin(), static_cast<int>(engine_() % values.size()));
  }
  int Between(int first, int last) {
    return first + static_cast<int>(engine_() % static_cast<unsigned>(last - first + 1));
  }
  bool OneIn(int n) { return Between(1, n) == 1; }

 private:
  std::mt19937 engine_;
};

json Rope(Picker& pick, int positions) {
  switch (pick.Between(0, 5)) {
    case 0: return {{"rope_type", "linear"}, {"factor", pick.From({2, 4})}};
    case 1: return {{"rope_type", "dynamic"}, {"factor", 2.0}};
    case 2:
      return {{"rope_type", "yarn"},
              {"factor", 4.0},
              {"original_max_position_embeddings", positions / 4}};
    case 3:
      return {{"rope_type", "llama3"},
              {"factor", 8.0},
              {"low_freq_factor", 1.0},
              {"high_freq_factor", 4.0},
              {"original_max_position_embeddings", positions / 4}};
    default: return nullptr;
  }
}

}  // namespace

std::string RandomConfig(unsigned seed) {
  Picker pick(seed);
  const auto& architectures = frontend::AllArchitectures();
  const frontend::ArchitectureFacts& facts =
      architectures[pick.Between(0, static_cast<int>(architectures.size()) - 1)];
  const int group = pick.From({1, 2, 3, 5, 7}), key_value_heads = pick.From({1, 1, 2});
  const int positions = pick.From({64, 128});
  json config = {{"model_type", facts.model_type},
                 {"architectures", {facts.architecture}},
                 {"hidden_size", pick.From({16, 21, 33, 40})},
                 {"intermediate_size", pick.From({8, 19, 32, 45})},
                 {"num_hidden_layers", pick.From({1, 1, 2})},
                 {"num_attention_heads", group * key_value_heads},
                 {"num_key_value_heads", key_value_heads},
                 {"head_dim", pick.From({8, 10, 14, 16, 18, 24, 32, 38, 40, 72, 80, 100, 144})},
                 {"vocab_size", pick.From({17, 29, 32, 53})},
                 {"hidden_act", "silu"},
                 {"max_position_embeddings", positions},
                 {"rms_norm_eps", 1e-5},
                 {"rope_theta", 10000.0},
                 {"tie_word_embeddings", pick.OneIn(2)}};
  if (facts.default_head_dim == 0 && pick.OneIn(2)) {
    // Its head dim is what the heads leave of the hidden size.
    config.erase("head_dim");
    const int heads = pick.From({1, 2, 3, 5});
    config["num_attention_heads"] = heads;
    config["num_key_value_heads"] = pick.OneIn(2) ? heads : 1;
    config["hidden_size"] = heads * pick.From({8, 10, 12});
  }
  // Keys that say nothing to an architecture without the rule are left out: the front end refuses
  // some of them.
  const auto biased_by = [&](frontend::BiasRule rule) {
    return facts.qkv_bias == rule || facts.output_bias == rule || facts.mlp_bias == rule;
  };
  if (biased_by(frontend::BiasRule::kAttentionBiasKey)) config["attention_bias"] = pick.OneIn(2);
  if (biased_by(frontend::BiasRule::kMlpBiasKey)) config["mlp_bias"] = pick.OneIn(2);
  if (facts.window == frontend::WindowRule::kEveryLayer) {
    config["sliding_window"] = pick.OneIn(2) ? json(pick.From({1, 3, 8})) : json();
  }
  if (facts.window == frontend::WindowRule::kUseSlidingWindow && pick.OneIn(2)) {
    config["use_sliding_window"] = true;
    config["sliding_window"] = pick.From({2, 5});
    config["max_window_layers"] = pick.From({0, 1});
  }
  if (const json rope = Rope(pick, positions); !rope.is_null()) config["rope_scaling"] = rope;
  return config.dump(1);
}

frontend::FrontendOptions RandomOptions(unsigned seed) {
  Picker pick(seed + 1000003);
  frontend::FrontendOptions options;
  static constexpr ir::DType kDTypes[] = {ir::DType::kF32, ir::DType::kBF16, ir::DType::kF16};
  options.dtype = kDTypes[pick.Between(0, 2)];
  options.batch = {1, pick.From({1, 2})};
  options.seq = {1, pick.From({1, 3, 17, 64})};
  options.past = {0, pick.From({0, 0, 19})};
  // Beyond max_position_embeddings, 64 at least, a dynamic rope takes one sequence.
  if (options.seq.max + options.past.max > 64) options.batch.max = 1;
  return options;
}

}  // namespace hackc::property
