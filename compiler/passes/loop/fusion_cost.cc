// SPDX-License-Identifier: MIT
#include "compiler/passes/loop/fusion_cost.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_set>
#include <utility>

#include "compiler/ir/rewrite.h"

namespace hackc::passes {
namespace {

using namespace ir;  // NOLINT

constexpr double kTranscendental = 8;

double OperationsOf(const Expr& node) {
  if (!IsFloat(node->dtype)) return 0;
  if (const Unary* unary = As<Unary>(node)) {
    return unary->op == UnaryOp::kNeg || unary->op == UnaryOp::kAbs ? 1 : kTranscendental;
  }
  if (const Binary* binary = As<Binary>(node)) {
    return binary->op == BinaryOp::kDiv || binary->op == BinaryOp::kPow ? kTranscendental : 1;
  }
  return As<Select>(node) ? 1 : 0;
}

class Counter {
 public:
  void Count(const Function& fn, bool largest) {
    for (const SymbolDecl& symbol : fn.symbols) {
      symbols_[symbol.name] = static_cast<double>(largest ? symbol.max : symbol.min);
    }
    sizes_.clear();
    for (const BufferDecl& buffer : fn.buffers) sizes_[buffer.name] = SizeOf(buffer.dtype);
    Count(fn.body, 1);
  }
  FusionCost cost() const { return cost_; }

 private:
  using Seen = std::unordered_set<Expr, ExprHash, ExprEqual>;

  // Axes stand at the middle of their range, so that a triangular loop nest counts half of its
  // square.
  double Evaluate(const Expr& e) const {
    if (auto value = AsInt(e)) return static_cast<double>(*value);
    if (const Symbol* symbol = As<Symbol>(e)) return symbols_.at(symbol->name);
    if (const Var* var = As<Var>(e)) return FindOr(middle_, var->name);
    if (As<Load>(e)) return std::numeric_limits<double>::infinity();  // as its clamp lets it be
    const Binary* n = As<Binary>(e);
    if (!n) return 1;
    double a = Evaluate(n->a), b = Evaluate(n->b);
    switch (n->op) {
      case BinaryOp::kAdd: return a + b;
      case BinaryOp::kSub: return a - b;
      case BinaryOp::kMul: return a * b;
      case BinaryOp::kFloorDiv: return b == 0 ? 0 : a / b;
      case BinaryOp::kMin: return std::min(a, b);
      case BinaryOp::kMax: return std::max(a, b);
      default: return a;
    }
  }

  void CountExpr(const Expr& e, double times, Seen& seen) {
    Walk(e, [&](const Expr& node) {
      if (!seen.insert(node).second) return;
      cost_.operations += times * OperationsOf(node);
      const Load* load = As<Load>(node);
      // A length is loaded once, before the loop that it does not vary with.
      if (load && (IsFloat(load->dtype) || Uses(node, axis_)))
        cost_.bytes += times * FindOr(sizes_, load->buffer);
    });
  }

  void Count(const Block& block, double times) {
    Seen seen;
    for (const Stmt& s : block) {
      if (const For* loop = As<For>(s)) {
        double extent = std::max(0.0, Evaluate(loop->extent));
        middle_[loop->axis] = (extent - 1) / 2;
        cost_.trips += times * extent;
        const std::string outer = std::exchange(axis_, loop->axis);
        Count(loop->body, times * extent);
        axis_ = outer;
        continue;
      }
      WalkExprs({s}, [&](const Expr& e) { CountExpr(e, times, seen); });
      if (As<Accumulate>(s)) cost_.operations += times;
      if (const Store* store = As<Store>(s)) cost_.bytes += times * sizes_.at(store->buffer);
    }
  }

  std::map<std::string, double> symbols_, middle_;
  std::map<std::string, int> sizes_;
  std::string axis_;  // of the innermost loop
  FusionCost cost_;
};

}  // namespace

FusionCost CostOf(const std::vector<const Function*>& kernels, bool largest) {
  Counter counter;
  for (const Function* kernel : kernels) counter.Count(*kernel, largest);
  return counter.cost();
}

bool CostsNoMore(const std::vector<const Function*>& fused,
                 const std::vector<const Function*>& separate) {
  constexpr double kRounding = 1 + 1e-9;  // sums of products above 2^53
  for (bool largest : {false, true}) {
    const FusionCost a = CostOf(fused, largest), b = CostOf(separate, largest);
    if (a.bytes > b.bytes * kRounding || a.trips > b.trips * kRounding ||
        a.operations > b.operations * kRounding) {
      return false;
    }
  }
  return true;
}

}  // namespace hackc::passes
