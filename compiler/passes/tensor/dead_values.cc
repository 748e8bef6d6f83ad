// SPDX-License-Identifier: MIT
#include "compiler/passes/tensor/dead_values.h"

#include <algorithm>
#include <set>

namespace hackc::passes {

using namespace ir;  // NOLINT

TensorModule DeadValues(const TensorModule& module) {
  TensorModule result = module;
  for (TensorSegment& segment : result.segments) {
    std::set<std::string> alive(segment.yields.begin(), segment.yields.end());
    std::vector<TensorOp> kept;
    for (auto op = segment.ops.rbegin(); op != segment.ops.rend(); ++op) {
      if (!alive.contains(op->out) && !std::holds_alternative<TensorScatter>(op->op)) continue;
      for (const std::string& value : ValuesRead(*op)) alive.insert(value);
      kept.push_back(*op);
    }
    std::reverse(kept.begin(), kept.end());
    segment.ops = std::move(kept);
  }
  return result;
}

}  // namespace hackc::passes
