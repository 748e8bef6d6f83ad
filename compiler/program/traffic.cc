// SPDX-License-Identifier: MIT
#include "compiler/program/traffic.h"

#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "compiler/ir/bounds_proof.h"
#include "compiler/ir/simplify.h"
#include "compiler/program/dim_expr.h"

namespace hackc::program {
namespace {

using ir::As;
using ir::Expr;

class Walker {
 public:
  explicit Walker(const ir::LoopFn& loop) : loop_(loop), ranges_(loop.fn.symbols) {}

  Traffic Run() {
    WalkBlock(loop_.fn.body);
    Traffic traffic;
    for (const ir::BufferDecl& buffer : loop_.fn.buffers) {
      DimExpr elements = Min(Product(buffer.shape), reached_[buffer.name]);
      traffic.bytes_moved =
          Add(std::move(traffic.bytes_moved), Mul(elements, Constant(ir::SizeOf(buffer.dtype))));
    }
    traffic.operations = std::move(operations_);
    return traffic;
  }

 private:
  struct Loop {
    std::string axis;
    DimExpr reached;  // values that it takes
    DimExpr mean;     // iterations
  };

  void WalkBlock(const ir::Block& block) {
    for (const ir::Stmt& statement : block) {
      if (const auto* loop = As<ir::For>(statement)) {
        const std::vector<Loop> outer = loops_;
        Count(loop->extent, 0);
        Enter(*loop);
        WalkBlock(loop->body);
        loops_ = outer;
      } else if (const auto* let = As<ir::Let>(statement)) {
        AddAxes(let->value, let_axes_[let->name]);
        Count(let->value, 0);
      } else if (const auto* accumulate = As<ir::Accumulate>(statement)) {
        for (const Expr& operand : accumulate->operands) Count(operand, 1);
        if (accumulate->guard) Count(accumulate->guard, 0);
      } else if (const auto* store = As<ir::Store>(statement)) {
        Reach(store->buffer, store->indices);
        for (const Expr& index : store->indices) Count(index, 0);
        Count(store->value, 0);
        if (store->guard) Count(store->guard, 0);
      }
    }
  }

  void Enter(const ir::For& loop) {
    auto with = [&](const Expr& e, auto coordinate) {
      return ir::Substitute(ir::WithoutLoads(e), [&](const std::string& name) -> Expr {
        const Expr* extent = FindOrNull(extents_, name);
        return extent ? coordinate(*extent) : nullptr;
      });
    };
    const auto zero = [](const Expr&) { return ir::IntLit(0); };
    const auto middle = [](const Expr& extent) { return ir::FloorDiv(extent - 1, 2); };
    Expr all = loop.extent, limit;
    std::string part_axis;
    for (Loop& outer : loops_) {
      const auto [whole, most_of_parts] = WholeOf(loop.extent, outer.axis);
      if (!whole) continue;
      all = whole;
      limit = with(most_of_parts, zero);
      part_axis = outer.axis;
      outer.reached = outer.mean = Constant(1);
      break;
    }
    // Extents grow with an outer axis (causality), or shrink.
    Expr first = with(all, zero);
    Expr last = with(all, [](const Expr& extent) { return extent - 1; });
    Expr most = ir::Simplify(ir::Max(first, last), ranges_);
    Expr mean = with(all, middle);
    if (limit) {
      most = ir::Min(most, limit);
      mean = ir::Min(mean, limit);
    }
    // What a mask leaves out before it begins (a window) is neither read nor counted.
    ranges_.SetAxis(loop.axis, loop.extent);
    Expr before = ir::IntLit(0), mean_before = ir::IntLit(0);
    for (Expr begin : Begins(loop)) {
      begin = ir::Substitute(begin, part_axis, ir::IntLit(0));
      before = ir::Max(before, with(begin, zero));
      mean_before = ir::Max(mean_before, with(begin, middle));
    }
    extents_[loop.axis] = most;
    loops_.push_back({loop.axis, FromExpr(ir::Simplify(most - before, ranges_)),
                      FromExpr(ir::Simplify(mean - mean_before, ranges_))});
  }

  // How many iterations there are for all of `axis` together, where `extent` is that of a part of
  // them: max(min(C, E - axis * C), 0), of N parts, is the smaller of E and N * C in all. Nulls
  // where it is not.
  std::pair<Expr, Expr> WholeOf(const Expr& extent, const std::string& axis) const {
    const auto* clipped = As<ir::Binary>(extent);
    if (!clipped || clipped->op != ir::BinaryOp::kMax || ir::AsInt(clipped->b) != 0) return {};
    const auto* part = As<ir::Binary>(clipped->a);
    if (!part || part->op != ir::BinaryOp::kMin) return {};
    for (const auto& [length, rest] : {std::pair(part->a, part->b), std::pair(part->b, part->a)}) {
      const Expr end = ir::Simplify(rest + ir::Axis(axis) * length, ranges_);
      if (!ir::Uses(length, axis) && !ir::Uses(end, axis)) return {end, extents_.at(axis) * length};
    }
    return {};
  }

  // Where the masks of a loop's scores begin.
  std::vector<Expr> Begins(const ir::For& loop) const {
    std::vector<Expr> begins;
    for (const ir::Stmt& statement : loop.body) {
      const auto* let = As<ir::Let>(statement);
      const Expr mask = let ? ir::MaskOf(let->value) : nullptr;
      if (mask) absl::c_copy(ir::BeginsOf(mask, loop.axis, ranges_), std::back_inserter(begins));
    }
    return begins;
  }

  // Float operations of `e`, and `extra`, in all iterations; and the elements that its loads reach.
  void Count(const Expr& e, int64_t extra) {
    int64_t count = extra;
    ir::Walk(e, [&](const Expr& node) {
      bool arithmetic = (As<ir::Unary>(node) || As<ir::Binary>(node)) && ir::IsFloat(node->dtype);
      count += arithmetic ? 1 : 0;
      if (const auto* load = As<ir::Load>(node)) Reach(load->buffer, load->indices);
    });
    if (count == 0) return;
    DimExpr total = Constant(count);
    for (const Loop& loop : loops_) total = Mul(total, loop.mean);
    operations_ = Add(std::move(operations_), std::move(total));
  }

  void Reach(const std::string& buffer, const std::vector<Expr>& indices) {
    std::set<std::string> axes;
    for (const Expr& index : indices) AddAxes(index, axes);
    DimExpr elements = Constant(1);
    for (const Loop& loop : loops_) {
      if (axes.count(loop.axis)) elements = Mul(elements, loop.reached);
    }
    DimExpr& reached = reached_[buffer];
    reached = Max(std::move(reached), std::move(elements));
  }

  // Loop axes that `e` depends on, through lets too.
  void AddAxes(const Expr& e, std::set<std::string>& axes) const {
    ir::Walk(e, [&](const ir::Var& var) {
      const std::set<std::string> of = FindOr(let_axes_, var.name, {var.name});
      axes.insert(of.begin(), of.end());
    });
  }

  const ir::LoopFn& loop_;
  ir::RangeMap ranges_;
  std::vector<Loop> loops_;
  std::map<std::string, Expr> extents_;  // at most, over symbols
  std::map<std::string, std::set<std::string>> let_axes_;
  std::map<std::string, DimExpr> reached_;
  DimExpr operations_;
};

}  // namespace

Traffic TrafficOf(const ir::LoopFn& loop) { return Walker(loop).Run(); }

}  // namespace hackc::program
