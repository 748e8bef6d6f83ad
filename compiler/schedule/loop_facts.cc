// SPDX-License-Identifier: MIT
#include "compiler/schedule/loop_facts.h"

#include <algorithm>

#include "compiler/ir/rewrite.h"
#include "compiler/ir/stmt_verify.h"

namespace hackc::schedule {
namespace {

using namespace ir;  // NOLINT

class Finder {
 public:
  explicit Finder(const LoopFn& loop) : loop_(loop), ranges_(loop.fn.symbols) {}

  LoopFacts Run() {
    Visit(loop_.fn.body, {}, true);
    return std::move(facts_);
  }

 private:
  void Visit(const Block& block, const std::vector<std::string>& outer, bool alone) {
    alone = alone && block.size() == 1;
    for (const Stmt& stmt : block) {
      if (const auto* loop = As<For>(stmt)) {
        ranges_.SetAxis(loop->axis, loop->extent);
        const Range extent = Bounds(loop->extent, ranges_);
        const bool grid = alone && loop->role == AxisRole::kFree && OverSymbols(loop->extent);
        facts_.axes.push_back({loop->axis, loop->role, extent.min, extent.max,
                               AsInt(loop->extent).has_value(), grid && extent.min > 0, outer});
        std::vector<std::string> inner = outer;
        inner.push_back(loop->axis);
        Visit(loop->body, inner, grid);
      } else if (const auto* let = As<Let>(stmt)) {
        lets_[let->name] = let->value;
      } else if (const auto* acc = As<Accumulator>(stmt)) {
        monoids_[acc->name] = acc->monoid;
      } else if (const auto* update = As<Accumulate>(stmt)) {
        VisitUpdate(*update, outer);
      } else if (const auto* store = As<Store>(stmt)) {
        facts_.widest_store = std::max(facts_.widest_store, SizeOf(store->value->dtype));
      }
    }
  }

  void VisitUpdate(const Accumulate& update, const std::vector<std::string>& outer) {
    if (monoids_[update.name] == Monoid::kSoftmaxSum) {
      const auto summed = std::find_if(outer.rbegin(), outer.rend(), [&](const std::string& axis) {
        return facts_.Find(axis)->role != AxisRole::kFree;
      });
      if (summed != outer.rend() && !absl::c_linear_search(facts_.softmax_axes, *summed))
        facts_.softmax_axes.push_back(*summed);
      Expr value = InlineLets(update.operands[1]);
      for (const Load* load : OuterLoads(value)) facts_.softmax_values.push_back(load->buffer);
      return;
    }
    if (outer.empty() || facts_.Find(outer.back())->role != AxisRole::kContract) return;
    const auto* product = As<Binary>(update.operands[0]);
    if (product == nullptr || product->op != BinaryOp::kMul) return;
    Contraction contraction;
    contraction.k_axis = outer.back();
    const Expr in_a = InlineLets(product->a), in_b = InlineLets(product->b);
    for (const std::string& axis : outer) {
      if (facts_.Find(axis)->role == AxisRole::kContract) continue;
      const bool a = Uses(in_a, axis), b = Uses(in_b, axis);
      if (a && !b) contraction.m_axes.push_back(axis);
      if (b && !a) contraction.n_axes.push_back(axis);
    }
    SetOperand(in_a, contraction.a, contraction.a_dtype);
    SetOperand(in_b, contraction.b, contraction.b_dtype);
    facts_.contractions.push_back(std::move(contraction));
  }

  Expr InlineLets(const Expr& e) const {
    return Substitute(e, [&](const std::string& name) { return InlineLets(FindOr(lets_, name)); });
  }

  static void SetOperand(const Expr& operand, std::string& buffer, DType& dtype) {
    const std::vector<const Load*> loads = OuterLoads(operand);
    if (loads.size() != 1) return;
    buffer = loads[0]->buffer;
    dtype = loads[0]->dtype;
  }

  const LoopFn& loop_;
  RangeMap ranges_;
  LoopFacts facts_;
  std::map<std::string, Expr> lets_;
  std::map<std::string, Monoid> monoids_;
};

}  // namespace

LoopFacts FindFacts(const LoopFn& loop) { return Finder(loop).Run(); }

}  // namespace hackc::schedule
