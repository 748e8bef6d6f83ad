// SPDX-License-Identifier: MIT
#include "compiler/passes/tensor/inline_views.h"

#include <map>
#include <set>
#include <utility>

#include "compiler/ir/simplify.h"

namespace hackc::passes {
namespace {

using namespace ir;  // NOLINT

// What a view renames, absent for other operations. The pages of a state are read where they lie,
// too: a gather of one would copy a whole cache.
Expr Renamed(const TensorOp& op, const std::set<std::string>& states) {
  if (const auto* view = std::get_if<TensorView>(&op.op)) return view->source;
  const auto* gather = std::get_if<TensorGather>(&op.op);
  const Load* load = gather ? As<Load>(gather->source) : nullptr;
  return load && states.contains(load->buffer) ? gather->source : nullptr;
}

// The element of a view that `load` reads, as a load of the view's source. What holds back either
// load holds back both.
Expr Through(const TensorOp& view, const Expr& source, const Load& load) {
  const Expr element = Substitute(source, [&](const std::string& name) -> Expr {
    for (size_t i = 0; i < view.axes.size(); ++i) {
      if (view.axes[i].name == name) return load.indices[i];
    }
    return nullptr;
  });
  const Load& read = *As<Load>(element);
  return MakeLoad(read.buffer, read.dtype, read.indices, And(read.guard, load.guard));
}

}  // namespace

TensorModule InlineViews(const TensorModule& module) {
  TensorModule result = module;
  for (TensorSegment& segment : result.segments) {
    std::map<std::string, std::pair<TensorOp, Expr>> views;  // already free of other views
    std::set<std::string> states;                            // updated ones
    for (TensorOp& op : segment.ops) {
      RangeMap ranges(module.symbols);
      for (const TensorAxis& axis : FreeAxes(op)) ranges.SetAxis(axis.name, axis.extent);
      for (const TensorAxis& axis : ReducedAxes(op)) ranges.SetAxis(axis.name, axis.extent);
      op = MapExprs(op, [&](const Expr& e) {
        Expr inlined = Rewrite(e, [&](const Load& load) -> Expr {
          const auto* view = FindOrNull(views, load.buffer);
          return view ? Through(view->first, view->second, load) : nullptr;
        });
        return inlined == e ? e : Simplify(inlined, ranges);
      });
      if (std::holds_alternative<TensorScatter>(op.op)) states.insert(op.out);
      if (Expr source = Renamed(op, states)) views[op.out] = {op, source};
    }
  }
  return result;
}

}  // namespace hackc::passes
