// SPDX-License-Identifier: MIT
#include "compiler/ir/tensor_walk.h"

namespace hackc::ir {
namespace {

using Map = std::function<Expr(const Expr&)>;

void MapField(const auto&, const Map&) {}
void MapField(Expr& e, const Map& map) {
  if (e) e = map(e);
}
void MapField(std::vector<Expr>& exprs, const Map& map) {
  for (Expr& e : exprs) e = map(e);
}
void MapField(std::vector<TensorAxis>& axes, const Map& map) {
  for (TensorAxis& axis : axes) axis.extent = map(axis.extent);
}

}  // namespace

std::vector<TensorAxis> ReducedAxes(const TensorOp& op) {
  if (const auto* reduce = std::get_if<TensorReduce>(&op.op)) return reduce->reduce_axes;
  if (const auto* contract = std::get_if<TensorContract>(&op.op)) return contract->contract_axes;
  return {};
}

const std::vector<TensorAxis>& FreeAxes(const TensorOp& op) {
  const auto* scatter = std::get_if<TensorScatter>(&op.op);
  return scatter ? scatter->update_axes : op.axes;
}

TensorOp MapExprs(const TensorOp& op, const std::function<Expr(const Expr&)>& map) {
  TensorOp result = op;
  std::visit(
      [&]<typename T>(T& n) {
        ForEachField<T>([&](const auto& field) { MapField(n.*field.member, map); });
      },
      result.op);
  return result;
}

std::vector<Expr> ExprsOf(const TensorOp& op) {
  std::vector<Expr> exprs;
  MapExprs(op, [&](const Expr& e) {
    exprs.push_back(e);
    return e;
  });
  return exprs;
}

std::vector<std::string> ValuesRead(const TensorOp& op) {
  std::vector<std::string> values;
  auto add = [&](const std::string& name) {
    if (!absl::c_linear_search(values, name)) values.push_back(name);
  };
  if (const auto* scatter = std::get_if<TensorScatter>(&op.op)) add(scatter->state);
  for (const Expr& e : ExprsOf(op)) {
    for (const Load* load : Loads(e)) add(load->buffer);
  }
  return values;
}

RangeMap RangesOf(const TensorOp& op, const std::vector<SymbolDecl>& symbols) {
  RangeMap ranges(symbols);
  for (const TensorAxis& axis : FreeAxes(op)) ranges.SetAxis(axis.name, axis.extent);
  for (const TensorAxis& axis : ReducedAxes(op)) ranges.SetAxis(axis.name, axis.extent);
  return ranges;
}

}  // namespace hackc::ir
