// SPDX-License-Identifier: MIT
// Writes one kernel as loops: the operation that it is for (the sink), with some of the values that
// it reads computed in place (fused) and the others loaded.
//
// The sink's axes become free loops, in order. A fused value is computed in the outermost loop that
// fixes the indices at which it is read, once for each such loop iteration:
//   - a map, view or gather is written where it is read, or as a `let` further out;
//   - a reduce or contract becomes an accumulator and its loops: a row's statistic stands in the
//     row's loop before the columns, a matrix product's sum at (m, n), a score inside the loop over
//     keys;
//   - contracts of equal extents in the same place share one loop (gate and up);
//   - a softmax_sum keeps one state for each element of the axis that its score does not depend on,
//     so that each score is computed once:
//       acc @softmax[128]: softmax_sum
//       for %t: reduce in past + s + 1 { ...score... for %e { @softmax[%e] <- (score, value) } }
//
// Names are canonical: x0, x1 inputs, w0 weights, state0 states, y outputs; the same algebra gives
// the same text. Thread safety: pure function.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/ir/loop_module.h"
#include "compiler/ir/tensor.h"

namespace hackc::passes {

// What a segment's operations may refer to.
struct SegmentValues {
  std::vector<ir::SymbolDecl> symbols;
  std::map<std::string, ir::ValueType> types;                // every value that can be seen
  std::map<std::string, ir::SourceDecl::Kind> source_kinds;  // those that no operation makes
  std::map<std::string, const ir::TensorOp*> ops;            // of this segment, by what they define
  std::map<std::string, std::string> updated_states;  // a scatter's output -> the state's name
};

// Absent when the choice of `fused` cannot be written: a value computed in place would be read
// outside of its range, or an expression would nest too deep.
std::optional<ir::LoopLaunch> BuildKernel(const SegmentValues& values, const std::string& sink,
                                          const std::set<std::string>& fused);

}  // namespace hackc::passes
