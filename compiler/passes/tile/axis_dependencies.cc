// SPDX-License-Identifier: MIT
#include "compiler/passes/tile/axis_dependencies.h"

namespace hackc::passes {

using namespace ir;  // NOLINT: about IR from end to end

// A fixpoint, since a state may be rewritten in terms of itself.
AxisDependencies::AxisDependencies(const Function& fn) {
  do {
    changed_ = false;
    Collect(fn.body, {});
  } while (changed_);
}

std::set<std::string> AxisDependencies::AxesOf(const Expr& e) const {
  std::set<std::string> axes;
  const auto add = [&](const std::string& name) {
    axes.merge(Of(name));
    if (extent_axes_.count(name)) axes.insert(name);
  };
  Walk(
      e, [&](const Var& var) { add(var.name); }, [&](const Load& load) { add(load.buffer); });
  return axes;
}

void AxisDependencies::Grow(const std::string& name, const std::set<std::string>& axes) {
  const std::vector<std::string>& scope = scope_.at(name);
  for (const std::string& axis : axes) {
    bool outside = absl::c_linear_search(scope, axis);
    if (outside && depends_[name].insert(axis).second) changed_ = true;
  }
}

void AxisDependencies::Collect(const Block& block, const std::vector<std::string>& loops) {
  for (const Stmt& stmt : block) {
    if (const auto* loop = As<For>(stmt)) {
      extent_axes_[loop->axis] = AxesOf(loop->extent);
      std::vector<std::string> inner = loops;
      inner.push_back(loop->axis);
      Collect(loop->body, inner);
    } else if (const auto* let = As<Let>(stmt)) {
      scope_[let->name] = loops;
      Grow(let->name, AxesOf(let->value));
    } else if (const auto* acc = As<Accumulator>(stmt)) {
      scope_[acc->name] = loops;
    } else if (const auto* alloc = As<Alloc>(stmt)) {
      scope_[alloc->name] = loops;
    } else if (const auto* update = As<Accumulate>(stmt)) {
      std::set<std::string> axes = AxesOf(update->guard);
      for (const Expr& e : update->operands) axes.merge(AxesOf(e));
      for (size_t i = ScopeOf(update->name).size(); i < loops.size(); ++i)
        axes.merge(FindOr(extent_axes_, loops[i]));
      Grow(update->name, axes);
    } else if (const auto* store = As<Store>(stmt); store && scope_.count(store->buffer)) {
      std::set<std::string> axes = AxesOf(store->value);
      axes.merge(AxesOf(store->guard));
      Grow(store->buffer, axes);
    }
  }
}

}  // namespace hackc::passes
