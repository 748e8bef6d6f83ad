// SPDX-License-Identifier: MIT
#include "compiler/passes/loop/loop_builder.h"

#include <algorithm>
#include <utility>

#include "compiler/ir/rewrite.h"
#include "compiler/ir/simplify.h"
#include "compiler/passes/loop/finish_kernel.h"
#include "compiler/support/internal_error.h"
#include "compiler/support/name_set.h"

namespace hackc::passes {
namespace {

using namespace ir;  // NOLINT

constexpr int kDepthLimit = kMaxExprDepth - 32;  // leaves room for what tiling adds to indices

struct CannotFuse {};

// An open loop, or the function's body at depth 0.
struct Scope {
  std::string axis;
  AxisRole role = AxisRole::kFree;
  Expr extent;
  Block body;
  std::map<std::string, Expr> computed;  // value and indices -> the expression that holds it
  std::vector<std::string> joined;  // values of the reduction that is the body's last statement
};

class Builder {
 public:
  Builder(const SegmentValues& values, const std::set<std::string>& fused)
      : values_(values), fused_(fused), ranges_(values.symbols) {
    scopes_.emplace_back();
  }

  LoopLaunch Build(const TensorOp& sink) {
    used_.push_back(sink.out);
    const std::vector<TensorAxis>& axes = FreeAxes(sink);
    std::vector<Expr> at;
    for (const TensorAxis& axis : axes) at.push_back(Open(axis.name, AxisRole::kFree, axis.extent));
    std::map<std::string, Expr> bound = Bind(axes, at);
    if (const auto* scatter = std::get_if<TensorScatter>(&sink.op)) {
      std::vector<Expr> target;
      for (const Expr& index : scatter->indices) target.push_back(Index(Substitute(index, bound)));
      Expr guard = scatter->guard ? Index(Substitute(scatter->guard, bound)) : nullptr;
      Append(Store{OutsideName(sink.out), target, Value(Substitute(scatter->value, bound)), guard});
    } else {
      Expr value = IsReduction(sink) ? Reduction(sink, at) : Value(Substitute(Source(sink), bound));
      Append(Store{OutsideName(sink.out), at, value});
    }
    while (scopes_.size() > 1) Close();
    return FinishKernel(values_, sink, used_, scopes_[0].body);
  }

 private:
  static bool IsReduction(const TensorOp& op) {
    return std::holds_alternative<TensorReduce>(op.op) ||
           std::holds_alternative<TensorContract>(op.op);
  }
  static Expr Source(const TensorOp& op) {
    if (const auto* map = std::get_if<TensorMap>(&op.op)) return map->value;
    if (const auto* view = std::get_if<TensorView>(&op.op)) return view->source;
    return std::get<TensorGather>(op.op).source;
  }
  static std::map<std::string, Expr> Bind(const std::vector<TensorAxis>& axes,
                                          const std::vector<Expr>& at) {
    std::map<std::string, Expr> bound;
    for (size_t i = 0; i < axes.size(); ++i) bound[axes[i].name] = at[i];
    return bound;
  }

  // ---- scopes ----
  size_t Depth() const { return scopes_.size() - 1; }
  void Append(auto stmt) {
    scopes_.back().joined.clear();
    scopes_.back().body.push_back(MakeStmt(std::move(stmt)));
  }
  Expr Open(const std::string& base, AxisRole role, const Expr& extent) {
    std::string name = names_.Unique(base);
    scopes_.push_back({.axis = name, .role = role, .extent = extent});
    depth_of_[name] = Depth();
    ranges_.SetAxis(name, extent);
    return Axis(name);
  }
  void Close() {
    Scope scope = std::move(scopes_.back());
    scopes_.pop_back();
    Append(For{
        scope.axis, scope.role, LoopKind::kSequential, scope.extent, {}, std::move(scope.body)});
  }
  // Runs `emit` as if only the loops up to `depth` were open: what it appends stands before the
  // inner ones.
  Expr At(size_t depth, auto emit) {
    std::vector<Scope> inner(
        std::make_move_iterator(scopes_.begin() + static_cast<int64_t>(depth) + 1),
        std::make_move_iterator(scopes_.end()));
    scopes_.resize(depth + 1);
    Expr result = emit();
    HACKC_CHECK(Depth() == depth) << "unbalanced loops";
    std::move(inner.begin(), inner.end(), std::back_inserter(scopes_));
    return result;
  }
  // Depth of the innermost declaration that `exprs` use.
  size_t DepthOf(const std::vector<Expr>& exprs) const {
    size_t depth = 0;
    const auto reach = [&](const std::string& name) {
      depth = std::max(depth, FindOr(depth_of_, name));
    };
    for (const Expr& e : exprs) {
      Walk(
          e, [&](const Var& n) { reach(n.name); }, [&](const Load& n) { reach(n.buffer); });
    }
    return depth;
  }

  // ---- expressions ----
  Expr Index(const Expr& e) { return Simplify(Value(e), ranges_); }

  // `e` over the kernel's names, with loads of fused values replaced by what computes them.
  Expr Value(const Expr& e) {
    Expr result = std::visit([&](const auto& n) { return Rebuild(e, n); }, e->node);
    if (result->depth > kDepthLimit) throw CannotFuse();
    return result;
  }
  Expr Rebuild(const Expr& e, const auto&) { return e; }
  Expr Rebuild(const Expr&, const Unary& n) { return MakeUnary(n.op, Value(n.a)); }
  Expr Rebuild(const Expr&, const Binary& n) {
    Expr a = Value(n.a);
    return MakeBinary(n.op, a, Value(n.b));
  }
  Expr Rebuild(const Expr&, const Cast& n) { return MakeCast(n.dtype, Value(n.a)); }
  Expr Rebuild(const Expr&, const Select& n) {
    Expr condition = Simplify(Value(n.condition), ranges_);
    if (auto decided = AsInt(condition)) return Value(*decided ? n.a : n.b);
    ++lazy_;
    Expr a = Value(n.a), b = Value(n.b);
    --lazy_;
    return MakeSelect(condition, a, b);
  }
  Expr Rebuild(const Expr& e, const Load& n) {
    if (IsKernelName(n.buffer)) return e;
    const bool fused = fused_.contains(n.buffer);
    if (fused && n.guard) {
      const Expr zero = MakeCast(n.dtype, FloatLit(0));
      return Value(MakeSelect(n.guard, MakeLoad(n.buffer, n.dtype, n.indices), zero));
    }
    std::vector<Expr> indices;
    for (const Expr& index : n.indices) indices.push_back(Index(index));
    if (fused) return Fused(*values_.ops.at(n.buffer), indices);
    Expr guard = n.guard ? Index(n.guard) : nullptr;
    return MakeLoad(OutsideName(n.buffer), n.dtype, std::move(indices), std::move(guard));
  }

  // A fused value's element at `at`.
  Expr Fused(const TensorOp& op, const std::vector<Expr>& at) {
    if (!absl::c_linear_search(used_, op.out)) used_.push_back(op.out);
    if (IsReduction(op)) return Reduction(op, at);
    size_t depth = DepthOf(at);
    const std::string key = Key(op, at);
    if (auto it = scopes_[depth].computed.find(key); it != scopes_[depth].computed.end()) {
      if (depth == Depth() || IsName(it->second)) return it->second;
      // Written in place so far; inner loops get a name for it.
      return it->second = At(depth, [&, value = it->second] { return Declare(value); });
    }
    Expr source = Substitute(Source(op), Bind(op.axes, at));
    if (depth == Depth()) {
      Expr value = Value(source);
      if (lazy_ == 0) scopes_[depth].computed[key] = value;
      return value;
    }
    CheckInRange(op, at);
    return At(depth, [&] {
      Expr value = Eagerly([&] { return Value(source); });
      if (!IsName(value)) value = Declare(value);
      return scopes_[depth].computed[key] = value;
    });
  }

  static bool IsName(const Expr& e) { return As<Var>(e) || AsInt(e); }
  Expr Declare(const Expr& value) {
    std::string name = names_.Unique("v");
    depth_of_[name] = Depth();
    Append(Let{name, value});
    return MakeVar(name, value->dtype);
  }

  // Statements run whether or not the branch that wanted them is taken, so what they read must be
  // in range.
  void CheckInRange(const TensorOp& op, const std::vector<Expr>& at) {
    if (lazy_ == 0) return;
    for (size_t i = 0; i < at.size(); ++i) {
      if (!ProveNonNegative(at[i], ranges_) || !ProveLess(at[i], op.axes[i].extent, ranges_))
        throw CannotFuse();
    }
  }
  Expr Eagerly(auto emit) {
    int lazy = std::exchange(lazy_, 0);
    Expr result = emit();
    lazy_ = lazy;
    return result;
  }

  static std::string Key(const TensorOp& op, const std::vector<Expr>& at) {
    std::string key = op.out;
    for (const Expr& index : at) key += "|" + (index ? Print(index) : std::string("*"));
    return key;
  }

  // ---- reductions ----
  // Output dimensions of a softmax_sum that its score does not depend on and that are read by a
  // whole open loop: the state is kept for all of that loop's coordinates at once.
  std::vector<size_t> VectorDims(const TensorOp& op, const std::vector<Expr>& at) const {
    const auto* reduce = std::get_if<TensorReduce>(&op.op);
    if (!reduce || reduce->monoid != Monoid::kSoftmaxSum) return {};
    // Axes of the score and of the reduction's extents.
    std::vector<std::string> fixed = FreeVars(reduce->operands[0]);
    for (const TensorAxis& axis : reduce->reduce_axes)
      absl::c_copy(FreeVars(axis.extent), std::back_inserter(fixed));
    std::vector<size_t> dims;
    size_t outer = 0;
    for (size_t i = 0; i < at.size(); ++i) {
      const Var* var = As<Var>(at[i]);
      auto depth = var ? depth_of_.find(var->name) : depth_of_.end();
      bool whole = depth != depth_of_.end() && scopes_[depth->second].axis == var->name &&
                   AsInt(op.axes[i].extent) &&
                   Equal(scopes_[depth->second].extent, op.axes[i].extent);
      if (!absl::c_linear_search(fixed, op.axes[i].name) && whole) {
        dims.push_back(i);
      } else {
        outer = std::max(outer, DepthOf({at[i]}));
      }
    }
    const auto inside = [&](size_t i) { return DepthOf({at[i]}) > outer; };
    return absl::c_all_of(dims, inside) ? dims : std::vector<size_t>();
  }

  Expr Reduction(const TensorOp& op, const std::vector<Expr>& at) {
    std::vector<size_t> vector_dims = VectorDims(op, at);
    std::vector<Expr> outer = at, vector;
    for (size_t i : vector_dims) {
      vector.push_back(at[i]);
      outer[i] = nullptr;
    }
    const size_t depth = DepthOf(outer);
    const std::string key = Key(op, outer);
    Expr state = FindOr(scopes_[depth].computed, key);
    if (!state) {
      CheckInRange(op, at);
      state = At(depth, [&] { return Eagerly([&] { return Accumulation(op, at, vector_dims); }); });
      scopes_[depth].computed[key] = state;
    }
    const std::string& name = As<Var>(state)->name;
    return vector.empty() ? MakeVar(name, DType::kF32) : MakeLoad(name, DType::kF32, vector);
  }

  // Declares the state and runs the reduction's loops here.
  Expr Accumulation(const TensorOp& op, const std::vector<Expr>& at,
                    const std::vector<size_t>& vector_dims) {
    const auto* reduce = std::get_if<TensorReduce>(&op.op);
    Monoid monoid = reduce ? reduce->monoid : Monoid::kSum;
    std::string name = KernelName(
        names_.Unique(monoid == Monoid::kSoftmaxSum ? "softmax" : std::string(ir::Name(monoid))));
    depth_of_[name] = Depth();
    std::map<std::string, Expr> bound = Bind(op.axes, at);
    std::vector<TensorAxis> axes = ReducedAxes(op);
    for (TensorAxis& axis : axes) axis.extent = Index(Substitute(axis.extent, bound));
    AxisRole role = reduce ? AxisRole::kReduce : AxisRole::kContract;

    Accumulator state{name, monoid, {}};
    for (size_t i : vector_dims) state.extents.push_back(op.axes[i].extent);
    Reopened nest = vector_dims.empty() ? Reopen(op, axes, role) : Reopened();
    size_t base = Depth() - nest.axes.size();
    scopes_[base].body.push_back(MakeStmt(std::move(state)));
    if (nest.axes.empty()) {
      for (const TensorAxis& axis : axes) nest.axes.push_back(Open(axis.name, role, axis.extent));
    }
    for (size_t i = 0; i < axes.size(); ++i) bound[axes[i].name] = nest.axes[i];

    std::vector<Expr> inner;
    for (size_t i : vector_dims) {
      inner.push_back(Open(op.axes[i].name, AxisRole::kFree, op.axes[i].extent));
      bound[op.axes[i].name] = inner.back();
    }
    std::vector<Expr> operands;
    if (reduce) {
      for (const Expr& operand : reduce->operands)
        operands.push_back(Value(Substitute(operand, bound)));
    } else {
      const auto& contract = std::get<TensorContract>(op.op);
      Expr a = Value(Substitute(contract.a, bound));
      operands.push_back(a * Value(Substitute(contract.b, bound)));
    }
    Append(Accumulate{name, inner, operands});
    while (Depth() > base) Close();
    if (vector_dims.empty()) {
      nest.values.push_back(op.out);
      scopes_[base].joined = std::move(nest.values);
    }
    return MakeVar(name, DType::kF32);
  }

  // Reopens the loops of the reduction that was just closed here, if `op` sums over the same
  // extents and does not need its result.
  struct Reopened {
    std::vector<Expr> axes;           // none: not reopened
    std::vector<std::string> values;  // that the loops compute already
  };
  Reopened Reopen(const TensorOp& op, const std::vector<TensorAxis>& axes, AxisRole role) {
    Scope& here = scopes_.back();
    const auto needed = [&](const std::string& value) { return DependsOn(op, value); };
    if (here.joined.empty() || axes.empty() || absl::c_any_of(here.joined, needed)) return {};
    std::vector<const For*> loops;
    const Block* block = &here.body;
    for (const TensorAxis& axis : axes) {
      const For* loop = block->empty() ? nullptr : As<For>(block->back());
      if (!loop || loop->role != role || !Equal(loop->extent, axis.extent)) return {};
      loops.push_back(loop);
      block = &loop->body;
    }
    Reopened result{{}, std::move(here.joined)};
    Stmt keep = here.body.back();  // `loops` point into it
    here.body.pop_back();
    here.joined.clear();
    for (size_t i = 0; i < loops.size(); ++i) {
      scopes_.push_back({loops[i]->axis, role, loops[i]->extent, loops[i]->body});
      if (i + 1 < loops.size()) scopes_.back().body.pop_back();
      result.axes.push_back(Axis(loops[i]->axis));
    }
    return result;
  }

  // Whether `op` reads `value`, itself or through fused values.
  bool DependsOn(const TensorOp& op, const std::string& value) const {
    return absl::c_any_of(ValuesRead(op), [&](const std::string& read) {
      return read == value || (fused_.contains(read) && DependsOn(*values_.ops.at(read), value));
    });
  }

  const SegmentValues& values_;
  const std::set<std::string>& fused_;
  RangeMap ranges_;
  NameSet names_;
  std::vector<Scope> scopes_;
  std::map<std::string, size_t> depth_of_;
  std::vector<std::string> used_;  // values computed in this kernel
  int lazy_ = 0;                   // open branches that may not be taken
};

}  // namespace

std::optional<LoopLaunch> BuildKernel(const SegmentValues& values, const std::string& sink,
                                      const std::set<std::string>& fused) {
  try {
    return Builder(values, fused).Build(*values.ops.at(sink));
  } catch (const CannotFuse&) {
    return std::nullopt;
  }
}

}  // namespace hackc::passes
