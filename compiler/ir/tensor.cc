// SPDX-License-Identifier: MIT
#include "compiler/ir/tensor.h"

namespace hackc::ir {

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
  const auto replace = [&](Expr& e) {
    if (e) e = map(e);
  };
  std::visit([&](auto& n) { ForEachExpr(n, replace); }, result.op);
  return result;
}

std::vector<Expr> ExprsOf(const TensorOp& op) {
  std::vector<Expr> exprs;
  const auto add = [&](const Expr& e) {
    if (e) exprs.push_back(e);
  };
  std::visit([&](const auto& n) { ForEachExpr(n, add); }, op.op);
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

}  // namespace hackc::ir
