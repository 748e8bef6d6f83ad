// SPDX-License-Identifier: MIT
// A decoder's numbers: what its architecture's facts leave open, read from the config and checked.
//
//   HACKC_ASSIGN_OR_RETURN(DecoderConfig decoder, ReadDecoderConfig(json, options));
//   decoder.layers[3].window == 0
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/frontend/architecture_facts.h"
#include "compiler/frontend/frontend.h"
#include "compiler/frontend/rope_parameters.h"
#include "compiler/ir/graph.h"
#include "nlohmann/json.hpp"

namespace hackc::frontend {

// What may differ between the layers of one model.
struct LayerKind {
  int64_t window = 0;  // 0: full attention
  bool operator==(const LayerKind&) const = default;
};

struct DecoderConfig {
  const ArchitectureFacts* facts = nullptr;
  ir::DType dtype = ir::DType::kBF16;  // storage
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t heads = 0;
  int64_t key_value_heads = 0;
  int64_t head_dim = 0;
  double norm_epsilon = 0;
  ir::ActivationKind activation = ir::ActivationKind::kSilu;
  bool qkv_bias = false;
  bool output_bias = false;
  bool mlp_bias = false;
  bool tied_head = false;
  RopeParameters rope;
  std::vector<LayerKind> layers;
};

absl::StatusOr<DecoderConfig> ReadDecoderConfig(const nlohmann::json& config,
                                                const FrontendOptions& options);

}  // namespace hackc::frontend
