// SPDX-License-Identifier: MIT
// Which kind each layer is (sliding or full attention), and how equal layers group into segments.
//
//   kinds F F F S S S S          -> {0, 3, 1}, {3, 4, 1}
//   kinds S S F S S F S          -> {0, 2, 3}, {6, 1, 1}   (first layer, repeats, period)
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/frontend/config_reader.h"
#include "compiler/frontend/decoder_config.h"

namespace hackc::frontend {

// `longest`: positions that the request allows. A window at least that long is no window.
absl::StatusOr<std::vector<LayerKind>> ReadLayerKinds(ConfigReader& reader,
                                                      const ArchitectureFacts& facts,
                                                      int64_t layers, int64_t longest);

struct LayerGroup {
  int first_layer = 0;
  int count = 1;   // repeats
  int period = 1;  // layers in one repeat
};

// Covers the layers with groups, each as long as it can be; of equally long ones the shortest
// period.
std::vector<LayerGroup> GroupLayers(const std::vector<LayerKind>& kinds);

}  // namespace hackc::frontend
