// SPDX-License-Identifier: MIT
// Rotary embedding of a config: its type and numbers, read from both generations of keys, and the
// inverse frequencies that follow.
//
//   config.rope_theta, config.rope_scaling {type | rope_type, factor, ...}   until transformers 4
//   config.rope_parameters {rope_type, rope_theta, factor, ...}              from transformers 5
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/frontend/config_reader.h"
#include "compiler/frontend/frontend.h"

namespace hackc::frontend {

struct RopeParameters {
  std::vector<double> inverse_frequencies;  // head_dim / 2, each a float32 value
  double scale = 1;                         // of cosine and sine
  // The dynamic type, where the request reaches beyond its plain range; see ir::GraphRotaryTable.
  double dynamic_factor = 0;
  int64_t dynamic_length = 0;
};

// `max_positions` is the config's max_position_embeddings; `options` say how far a request reaches.
absl::StatusOr<RopeParameters> ReadRopeParameters(ConfigReader& config, int64_t head_dim,
                                                  int64_t max_positions,
                                                  const FrontendOptions& options);

}  // namespace hackc::frontend
