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

namespace hackc::frontend {

struct RopeParameters {
  std::vector<double> inverse_frequencies;  // head_dim / 2, each a float32 value
  double scale = 1;                         // of cosine and sine
  // The dynamic type, where the request reaches beyond its plain range; see ir::GraphRotaryTable.
  double dynamic_factor = 0;
  int64_t dynamic_length = 0;
};

// `longest` is the largest number of positions that the request allows; `max_positions` the
// config's max_position_embeddings.
absl::StatusOr<RopeParameters> ReadRopeParameters(ConfigReader& config, int64_t head_dim,
                                                  int64_t max_positions, int64_t longest);

}  // namespace hackc::frontend
