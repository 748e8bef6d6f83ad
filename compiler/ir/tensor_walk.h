// SPDX-License-Identifier: MIT
// The expressions of Tensor IR operations, for passes and verifiers: list them, rewrite them, list
// the values that they read.
//
//   TensorOp doubled = MapExprs(op, [](const Expr& e) { return Simplify(e, ranges); });
//   for (const std::string& value : ValuesRead(op)) ...
//
// Thread safety: pure functions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/ir/ranges.h"
#include "compiler/ir/tensor.h"

namespace hackc::ir {

// Axes summed over: reduce or contract axes; none for the other kinds.
std::vector<TensorAxis> ReducedAxes(const TensorOp& op);
// Axes that the expressions may use besides the reduced ones: the output's, or a scatter's update
// axes.
const std::vector<TensorAxis>& FreeAxes(const TensorOp& op);

// Every expression over axes: values, operands, indices, and extents of reduced and update axes.
std::vector<Expr> ExprsOf(const TensorOp& op);
// The same operation with each such expression replaced.
TensorOp MapExprs(const TensorOp& op, const std::function<Expr(const Expr&)>& map);

// Names of values that the operation reads (a scatter's state included), each once, in order.
std::vector<std::string> ValuesRead(const TensorOp& op);

// What is known of the operation's axes and the module's symbols.
RangeMap RangesOf(const TensorOp& op, const std::vector<SymbolDecl>& symbols);

}  // namespace hackc::ir
