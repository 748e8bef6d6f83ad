// SPDX-License-Identifier: MIT
#include "compiler/ir/tensor_walk.h"

#include <algorithm>

namespace hackc::ir {
namespace {

void MapAll(std::vector<Expr>& exprs, const std::function<Expr(const Expr&)>& map) {
  for (Expr& e : exprs) e = map(e);
}
void MapExtents(std::vector<TensorAxis>& axes, const std::function<Expr(const Expr&)>& map) {
  for (TensorAxis& axis : axes) axis.extent = map(axis.extent);
}

struct Mapper {
  const std::function<Expr(const Expr&)>& map;
  void operator()(TensorMap& n) const { n.value = map(n.value); }
  void operator()(TensorReduce& n) const {
    MapExtents(n.reduce_axes, map);
    MapAll(n.operands, map);
  }
  void operator()(TensorContract& n) const {
    MapExtents(n.contract_axes, map);
    n.a = map(n.a);
    n.b = map(n.b);
  }
  void operator()(TensorView& n) const { n.source = map(n.source); }
  void operator()(TensorGather& n) const { n.source = map(n.source); }
  void operator()(TensorScatter& n) const {
    MapAll(n.indices, map);
    n.value = map(n.value);
    if (n.guard) n.guard = map(n.guard);
  }
};

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
  std::visit(Mapper{map}, result.op);
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
    if (std::find(values.begin(), values.end(), name) == values.end()) values.push_back(name);
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
