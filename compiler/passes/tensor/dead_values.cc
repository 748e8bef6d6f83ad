// SPDX-License-Identifier: MIT
#include "compiler/passes/tensor/dead_values.h"

#include <set>

namespace hackc::passes {

using namespace ir;  // NOLINT

TensorModule DeadValues(const TensorModule& module) {
  TensorModule result = module;
  for (TensorSegment& segment : result.segments) {
    std::set<std::string> alive(segment.yields.begin(), segment.yields.end());
    for (auto op = segment.ops.rbegin(); op != segment.ops.rend(); ++op) {
      if (std::holds_alternative<TensorScatter>(op->op)) alive.insert(op->out);
      if (!alive.contains(op->out)) continue;
      for (const std::string& value : ValuesRead(*op)) alive.insert(value);
    }
    std::erase_if(segment.ops, [&](const TensorOp& op) { return !alive.contains(op.out); });
  }
  return result;
}

}  // namespace hackc::passes
