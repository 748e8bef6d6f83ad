// SPDX-License-Identifier: MIT
// Tensor IR: the algebra. Every operation defines each element of its output by an expression over
// axes; operands are loads of values at index expressions. Every rounding is a visible cast.
//
//   %ss: f32[batch, seq] = reduce sum [b in batch, s in seq] over [c in 3584] (f32(@x[b, s, c])
//                          * ...)
//   %y: bf16[batch, seq, 4608] = contract ...
//
// Axis names are unique within an operation. Extents are over symbols; a reduce axis' extent may
// also use the operation's output axes and loads (causal attention sums over min(@past_lengths[b],
// past) + s + 1 keys):
// the axis then simply ends there. A load whose guard is false is 0.
//
//   TensorOp small = MapExprs(op, [&](const Expr& e) { return Simplify(e, ranges); });
//   for (const std::string& value : ValuesRead(op)) ...
//
// Thread safety: plain values; pure functions.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/monoid.h"
#include "compiler/ir/value.h"

namespace hackc::ir {

struct TensorAxis {
  std::string name;
  Expr extent;
};
HACKC_FIELDS(TensorAxis, "axis", name, extent)

// out[axes] = value.
struct TensorMap {
  Expr value;
};
// out[axes] = monoid over reduce_axes of operands; float32. For kSoftmaxSum the operands are
// (score, value).
struct TensorReduce {
  Monoid monoid = Monoid::kSum;
  std::vector<TensorAxis> reduce_axes;
  std::vector<Expr> operands;
};
// out[axes] = sum over contract_axes of a * b; float32. Roles of the output axes follow from use:
// in both operands batch, in `a` only m, in `b` only n.
struct TensorContract {
  std::vector<TensorAxis> contract_axes;
  Expr a, b;
};
// out[axes] = source, a plain load with affine indices: no element is computed, only renamed.
struct TensorView {
  Expr source;
};
// out[axes] = source, a load with one index that is itself a load (clamped into range by Min/Max).
struct TensorGather {
  Expr source;
};
// state[indices] = value for each coordinate of `update_axes` where `guard` (absent: true) holds;
// the output names the updated state, whose type it has. Elements not written keep their value.
struct TensorScatter {
  std::string state;
  std::vector<TensorAxis> update_axes;
  std::vector<Expr> indices;
  Expr value, guard;
};

HACKC_FIELDS(TensorMap, "map", value)
HACKC_FIELDS(TensorReduce, "reduce", monoid, reduce_axes, operands)
HACKC_FIELDS(TensorContract, "contract", contract_axes, a, b)
HACKC_FIELDS(TensorView, "view", source)
HACKC_FIELDS(TensorGather, "gather", source)
HACKC_FIELDS(TensorScatter, "scatter", state, update_axes, indices, value, guard)

using TensorOpVariant =
    std::variant<TensorMap, TensorReduce, TensorContract, TensorView, TensorGather, TensorScatter>;

struct TensorOp {
  std::string out;
  ValueType type;
  std::vector<TensorAxis> axes;  // one for each dimension of `out`
  TensorOpVariant op;
  std::string label;  // what it is for, names kernels: "qkv_linear", "attention", "input_norm"
  SourceLine line = {};
};

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

using TensorSegment = Segment<TensorOp>;
using TensorModule = Module<TensorOp>;

}  // namespace hackc::ir
