// SPDX-License-Identifier: MIT
#include "tools/golden/bounds.h"

#include <cmath>
#include <map>

#include "compiler/support/internal_error.h"

namespace hackc::golden {
double RoundingError(ir::DType storage) {
  switch (storage) {
    case ir::DType::kF32: return 0x1p-25;
    case ir::DType::kBF16: return 0x1p-9;
    case ir::DType::kF16: return 0x1p-12;
    default: break;
  }
  HACKC_FAIL() << ir::Name(storage) << " is no storage dtype";
  return 0;
}

double StorageBound(const ir::GraphModule& graph, ir::DType storage, int64_t tokens) {
  std::map<std::string, int64_t>
      last_extent;  // of a value's innermost axis, which is never symbolic
  double roundings = 0, summed = 0;
  for (const ir::GraphSegment& segment : graph.segments) {
    for (const ir::GraphOp& op : segment.ops) {
      last_extent[op.out] = ir::AsInt(op.type.shape.back()).value_or(tokens);
    }
    for (const ir::Carry& carry : segment.carries) {
      last_extent[carry.name] = last_extent[carry.initial];
    }
    for (size_t i = 0; i < segment.results.size(); ++i) {
      last_extent[segment.results[i]] = last_extent[segment.yields[i]];
    }
    for (const ir::GraphOp& op : segment.ops) {
      roundings += segment.count;
      if (const auto* linear = std::get_if<ir::GraphLinear>(&op.op)) {
        roundings += segment.count;  // its weight
        summed += segment.count * static_cast<double>(last_extent[linear->x]);
      } else if (const auto* norm = std::get_if<ir::GraphRmsNorm>(&op.op)) {
        summed += segment.count * static_cast<double>(last_extent[norm->x]);
      } else if (const auto* layer_norm = std::get_if<ir::GraphLayerNorm>(&op.op)) {
        summed += 2.0 * segment.count * static_cast<double>(last_extent[layer_norm->x]);
      } else if (const auto* attention = std::get_if<ir::GraphAttention>(&op.op)) {
        summed += segment.count * static_cast<double>(last_extent[attention->q] + tokens);
      }
    }
  }
  const double unit = RoundingError(storage);
  return 4 * std::sqrt(unit * unit * roundings + 0x1p-48 * summed);
}

}  // namespace hackc::golden
