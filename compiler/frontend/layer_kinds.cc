// SPDX-License-Identifier: MIT
#include "compiler/frontend/layer_kinds.h"

#include <algorithm>
#include <string>

#include "compiler/support/cat.h"
#include "compiler/support/status_macros.h"

namespace hackc::frontend {
namespace {

constexpr int64_t kMaxWindow = int64_t{1} << 31;
constexpr int kMaxPeriod = 16;  // the published ones are 2 to 8

// True for each layer that slides, as layer_types or else max_window_layers says.
absl::StatusOr<std::vector<bool>> ReadSliding(ConfigReader& reader, int64_t layers,
                                              bool use_window) {
  const nlohmann::json* types = reader.Find("layer_types");
  HACKC_ASSIGN_OR_RETURN(const auto full_layers,
                         reader.Integer("max_window_layers", 0, kMaxWindow));
  std::vector<bool> sliding(layers, false);
  if (types == nullptr) {
    if (use_window && !full_layers) {
      return reader.Error("max_window_layers",
                          "missing; use_sliding_window is true, so expected the number of first "
                          "layers with full attention, or layer_types");
    }
    for (int64_t i = 0; i < layers; ++i) sliding[i] = use_window && i >= *full_layers;
    return sliding;
  }
  if (!types->is_array() || static_cast<int64_t>(types->size()) != layers) {
    return reader.Error("layer_types", "expected a list of num_hidden_layers = ", layers,
                        " strings, got ", ShortText(*types));
  }
  for (int64_t i = 0; i < layers; ++i) {
    const nlohmann::json& type = (*types)[i];
    const std::string path = Cat(reader.Path("layer_types"), "[", i, "]: ");
    if (type != "full_attention" && type != "sliding_attention") {
      return absl::InvalidArgumentError(
          Cat(path, "expected full_attention or sliding_attention, got ", ShortText(type)));
    }
    sliding[i] = type == "sliding_attention";
    if (sliding[i] && !use_window) {
      return absl::InvalidArgumentError(
          Cat(path, "sliding_attention contradicts use_sliding_window: false"));
    }
  }
  return sliding;
}

}  // namespace

absl::StatusOr<std::vector<LayerKind>> ReadLayerKinds(ConfigReader& reader,
                                                      const ArchitectureFacts& facts,
                                                      int64_t layers, int64_t longest) {
  std::vector<LayerKind> kinds(layers);
  if (facts.window == WindowRule::kNone) return kinds;
  const bool is_null = reader.IsExplicitNull("sliding_window");
  HACKC_ASSIGN_OR_RETURN(const auto given, reader.Integer("sliding_window", 1, kMaxWindow));
  int64_t window = given.value_or(is_null ? 0 : facts.default_window);
  std::vector<bool> sliding(layers, true);
  if (facts.window == WindowRule::kUseSlidingWindow) {
    HACKC_ASSIGN_OR_RETURN(const bool use_window, reader.Bool("use_sliding_window", false));
    if (use_window && window == 0) {
      return reader.Error("sliding_window",
                          "missing; use_sliding_window is true, so "
                          "expected an integer from 1 to ",
                          kMaxWindow);
    }
    HACKC_ASSIGN_OR_RETURN(sliding, ReadSliding(reader, layers, use_window));
  }
  if (window >= longest) window = 0;
  for (int64_t i = 0; i < layers; ++i) kinds[i].window = sliding[i] ? window : 0;
  return kinds;
}

std::vector<LayerGroup> GroupLayers(const std::vector<LayerKind>& kinds) {
  const int layers = static_cast<int>(kinds.size());
  std::vector<LayerGroup> groups;
  for (int first = 0; first < layers;) {
    LayerGroup best{first, 1, 1};
    for (int period = 1; period <= std::min(kMaxPeriod, layers - first); ++period) {
      int end = first + period;
      while (end < layers && kinds[end] == kinds[end - period]) ++end;
      const int count = (end - first) / period;
      // A longer period must pay: it has to repeat, and to cover more than the shorter ones.
      if ((count > 1 || period == 1) && count * period > best.count * best.period) {
        best = {first, count, period};
      }
    }
    groups.push_back(best);
    first += best.count * best.period;
  }
  return groups;
}

}  // namespace hackc::frontend
