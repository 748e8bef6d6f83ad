// SPDX-License-Identifier: MIT
#include "compiler/frontend/architecture_facts.h"

namespace hackc::frontend {

const std::vector<ArchitectureFacts>& AllArchitectures() {
  static const auto* table = new std::vector<ArchitectureFacts>{
      {.model_type = "llama",
       .architecture = "LlamaForCausalLM",
       .qkv_bias = BiasRule::kAttentionBiasKey,
       .output_bias = BiasRule::kAttentionBiasKey,
       .mlp_bias = BiasRule::kMlpBiasKey,
       .default_key_value_heads_is_heads = true},
      {.model_type = "mistral",
       .architecture = "MistralForCausalLM",
       .window = WindowRule::kEveryLayer,
       .default_max_positions = 131072,
       .default_window = 4096},
      {.model_type = "qwen2",
       .architecture = "Qwen2ForCausalLM",
       .qkv_bias = BiasRule::kAlways,
       .window = WindowRule::kUseSlidingWindow,
       .default_max_positions = 32768},
      {.model_type = "qwen3",
       .architecture = "Qwen3ForCausalLM",
       .qkv_bias = BiasRule::kAttentionBiasKey,
       .output_bias = BiasRule::kAttentionBiasKey,
       .query_key_norm = true,
       .window = WindowRule::kUseSlidingWindow,
       .default_head_dim = 128,
       .default_max_positions = 32768},
  };
  return *table;
}

}  // namespace hackc::frontend
