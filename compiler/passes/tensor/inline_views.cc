// SPDX-License-Identifier: MIT
#include "compiler/passes/tensor/inline_views.h"

#include <map>

#include "compiler/ir/simplify.h"
#include "compiler/ir/tensor_walk.h"

namespace hackc::passes {
namespace {

using namespace ir;  // NOLINT

// The element of a view that `load` reads, as a load of the view's source.
Expr Through(const TensorOp& view, const Load& load) {
  return Substitute(std::get<TensorView>(view.op).source, [&](const std::string& name) -> Expr {
    for (size_t i = 0; i < view.axes.size(); ++i) {
      if (view.axes[i].name == name) return load.indices[i];
    }
    return nullptr;
  });
}

}  // namespace

TensorModule InlineViews(const TensorModule& module) {
  TensorModule result = module;
  for (TensorSegment& segment : result.segments) {
    std::map<std::string, TensorOp> views;  // already free of other views
    for (TensorOp& op : segment.ops) {
      RangeMap ranges = RangesOf(op, module.symbols);
      op = MapExprs(op, [&](const Expr& e) {
        Expr inlined = Rewrite(e, [&](const Expr& node) -> Expr {
          const Load* load = As<Load>(node);
          auto view = load ? views.find(load->buffer) : views.end();
          return view == views.end() ? nullptr : Through(view->second, *load);
        });
        return inlined == e ? e : Simplify(inlined, ranges);
      });
      if (std::holds_alternative<TensorView>(op.op)) views[op.out] = op;
    }
  }
  return result;
}

}  // namespace hackc::passes
