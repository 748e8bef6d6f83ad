// SPDX-License-Identifier: MIT
// What an architecture is, as data: one row a model_type. The config's numbers fill in the rest;
// the builder knows no architecture by name.
//
//   const auto* facts = FindBy(AllArchitectures(), &ArchitectureFacts::model_type, "qwen2");
//   facts->qkv_bias == BiasRule::kAlways
//
// A new decoder whose layers are made of the same parts is a new row. Thread safety: constant data.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace hackc::frontend {

// Where a linear layer's bias comes from.
enum class BiasRule : uint8_t {
  kNever,
  kAlways,
  kAttentionBiasKey,  // config key attention_bias, false when absent
  kMlpBiasKey,        // config key mlp_bias, false when absent
};

enum class WindowRule : uint8_t {
  kNone,
  kEveryLayer,        // sliding_window holds for all layers; null: none
  kUseSlidingWindow,  // use_sliding_window, max_window_layers, layer_types
};

// Checkpoint names without ".weight" or ".bias"; "{layer}" is the layer's number.
struct WeightNames {
  std::string_view embedding = "model.embed_tokens";
  std::string_view final_norm = "model.norm";
  std::string_view head = "lm_head";
  std::string_view attention_norm = "model.layers.{layer}.input_layernorm";
  std::string_view mlp_norm = "model.layers.{layer}.post_attention_layernorm";
  std::string_view query = "model.layers.{layer}.self_attn.q_proj";
  std::string_view key = "model.layers.{layer}.self_attn.k_proj";
  std::string_view value = "model.layers.{layer}.self_attn.v_proj";
  std::string_view query_norm = "model.layers.{layer}.self_attn.q_norm";
  std::string_view key_norm = "model.layers.{layer}.self_attn.k_norm";
  std::string_view output = "model.layers.{layer}.self_attn.o_proj";
  std::string_view gate = "model.layers.{layer}.mlp.gate_proj";
  std::string_view up = "model.layers.{layer}.mlp.up_proj";
  std::string_view down = "model.layers.{layer}.mlp.down_proj";
};

struct ArchitectureFacts {
  std::string_view model_type;
  std::string_view architecture;  // the class in `architectures`
  BiasRule qkv_bias = BiasRule::kNever;
  BiasRule output_bias = BiasRule::kNever;
  BiasRule mlp_bias = BiasRule::kNever;
  bool query_key_norm = false;  // RMS norm of each query and key head, before rope
  double norm_weight_offset = 0;
  WindowRule window = WindowRule::kNone;
  // What transformers takes where a key is absent; 0: hidden_size / heads, all heads, no window.
  int64_t default_head_dim = 0;
  bool default_key_value_heads_is_heads = false;  // otherwise the key is required
  int64_t default_max_positions = 2048;
  int64_t default_window = 0;
  WeightNames names;
};

const std::vector<ArchitectureFacts>& AllArchitectures();

}  // namespace hackc::frontend
