// SPDX-License-Identifier: MIT
#include "compiler/passes/loop/split_reductions.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/ir/ranges.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/simplify.h"
#include "compiler/passes/find_update.h"
#include "compiler/support/cat.h"
#include "compiler/support/name_set.h"

namespace hackc::passes {
namespace {

using namespace ir;  // NOLINT

constexpr int64_t kPartUnit = 64;  // keys that a block takes at a time

class Splitter {
 public:
  Splitter(const LoopLaunch& launch, const SplitOptions& options)
      : launch_(launch), options_(options), ranges_(launch.fn.fn.symbols) {}

  // Both launches, or nothing where the launch stays as it is.
  std::vector<LoopLaunch> Run() {
    if (!FindReduction()) return {};
    // The last free axis that the loads along the reduction use as `axis // n` alone, or not at
    // all.
    for (const For& loop : free_) {
      if (int64_t size = GroupSize(loop); size > 1) {
        grouped_ = loop.axis;
        group_ = size;
      }
    }
    if (!WorthIt()) return {};
    names_ = TakenNames(launch_.fn.fn);
    LoopLaunch parts = MakeParts();
    return {std::move(parts), MakeCombination()};
  }

 private:
  // Free loops round one accumulator, the loop that reduces into it, and what follows.
  bool FindReduction() {
    const Block* block = &launch_.fn.fn.body;
    while (block->size() == 1) {
      const For* loop = As<For>(block->front());
      if (!loop || loop->role != AxisRole::kFree || !FreeVars(loop->extent).empty()) return false;
      free_.push_back(*loop);
      ranges_.SetAxis(loop->axis, loop->extent);
      block = &loop->body;
    }
    if (block->size() < 3) return false;
    state_ = As<Accumulator>(block->front());
    reduce_ = As<For>((*block)[1]);
    if (!state_ || !reduce_ || reduce_->role == AxisRole::kFree) return false;
    after_.assign(block->begin() + 2, block->end());
    const FoundUpdate found =
        FindUpdate(reduce_->body, [&](const std::string& name) { return name == state_->name; });
    update_ = found.update;
    if (!update_) return false;
    values_ = found.loops;
    if (absl::c_any_of(values_, [](const For& l) { return l.role != AxisRole::kFree; }))
      return false;
    WalkExprs(reduce_->body, [&](const Load& load) {
      std::set<std::string> axes;
      for (const Expr& index : load.indices)
        Walk(index, [&](const Var& var) { axes.insert(var.name); });
      if (axes.count(reduce_->axis)) streamed_.emplace_back(&load, std::move(axes));
    });
    // What the longest row asks for; of a length that is read from memory, its limit. Of a window,
    // e - max(e - n, 0) is min(n, e), where the length stands once.
    const Expr shortest = Rewrite(reduce_->extent, [](const Binary& n) -> Expr {
      const auto* first = n.op == BinaryOp::kSub ? As<Binary>(n.b) : nullptr;
      if (!first || first->op != BinaryOp::kMax) return nullptr;
      return Min(n.a - first->a, n.a - first->b);
    });
    const Expr limited = WithoutLoads(Simplify(shortest, ranges_));
    longest_ = Substitute(limited, [&](const std::string& name) -> Expr {
      Expr extent = ranges_.FindExtent(name);
      return extent ? extent - 1 : nullptr;
    });
    const auto grows = [&](const std::string& axis) { return Grows(limited, axis); };
    return Loads(longest_).empty() && FreeVars(longest_).empty() &&
           absl::c_all_of(FreeVars(limited), grows) && state_->extents.size() == values_.size();
  }

  // How many neighbours on the axis of `loop` share what is loaded.
  int64_t GroupSize(const For& loop) const {
    const int64_t extent = AsInt(loop.extent).value_or(1);
    std::set<int64_t> sizes;
    for (const auto& [load, axes] : streamed_) {
      for (const Expr& index : load->indices) {
        Expr rest = Rewrite(index, [&](const Binary& quotient) -> Expr {
          if (quotient.op != BinaryOp::kFloorDiv) return nullptr;
          const auto* var = As<Var>(quotient.a);
          auto size = var && var->name == loop.axis ? AsInt(quotient.b) : std::nullopt;
          if (size) sizes.insert(*size);
          return size ? IntLit(0) : nullptr;
        });
        for (const std::string& name : FreeVars(rest)) {
          if (name == loop.axis) return 1;
        }
      }
    }
    if (sizes.empty()) return extent;
    return sizes.size() == 1 && extent % *sizes.begin() == 0 ? *sizes.begin() : 1;
  }

  int64_t Most(const Expr& extent) const {
    return std::max<int64_t>(1, Bounds(extent, ranges_).max);
  }

  bool WorthIt() {
    const int64_t longest = Most(longest_);
    std::map<std::string, int64_t> inner;
    WalkStmts(reduce_->body, [&](const For& loop) { inner[loop.axis] = Most(loop.extent); });
    // What one block would read, and all of them together.
    int64_t block = 0, all = 0;
    for (const auto& [load, axes] : streamed_) {
      int64_t bytes = SizeOf(load->dtype) * longest;
      for (const std::string& axis : axes) bytes *= FindOr(inner, axis, 1);
      block += bytes;
      for (const For& loop : free_) {
        if (!axes.count(loop.axis)) continue;
        bytes *= Most(loop.extent) / (loop.axis == grouped_ ? group_ : 1);
      }
      all += bytes;
    }
    if (block < options_.least_bytes) return false;
    // Enough parts for the smallest grid.
    int64_t smallest = 1, results = 1;
    for (const For& loop : free_) {
      const int64_t least = std::max<int64_t>(1, Bounds(loop.extent, ranges_).min);
      smallest *= loop.axis == grouped_ ? least / group_ : least;
      results *= Most(loop.extent);
    }
    for (const For& loop : values_) results *= Most(loop.extent);
    const int64_t wanted = (options_.blocks + smallest - 1) / smallest;
    const int64_t affordable = all / 2 / (2 * SizeOf(DType::kF32) * results);
    parts_ = std::min({wanted, affordable, (longest + kPartUnit - 1) / kPartUnit});
    return parts_ > 1;
  }

  // A launch with the buffers that `body` names; those that it writes last.
  LoopLaunch MakeLaunch(const std::string& name, const std::string& what, Block body,
                        bool writes_temporaries) {
    LoopLaunch made;
    Function& fn = made.fn.fn;
    fn.name = name;
    fn.computes = Cat(launch_.fn.fn.computes, ", ", what);
    fn.symbols = launch_.fn.fn.symbols;
    fn.body = std::move(body);
    std::vector<std::pair<BufferDecl, std::string>> known;
    for (size_t i = 0; i < launch_.args.size(); ++i)
      known.emplace_back(launch_.fn.fn.buffers[i], launch_.args[i]);
    for (const auto& [buffer, arg] : temporaries_) {
      known.emplace_back(buffer, arg);
      known.back().first.access = writes_temporaries ? Access::kWrite : Access::kRead;
    }
    const std::set<std::string> named = NamesIn(fn.body);
    for (bool write : {false, true}) {
      for (const auto& [buffer, arg] : known) {
        if (!named.count(buffer.name) || (buffer.access != Access::kRead) != write) continue;
        made.args.push_back(arg);
        fn.buffers.push_back(buffer);
      }
    }
    return made;
  }

  const std::string& AddTemporary(const std::string& name, std::vector<Expr> shape) {
    temporaries_.push_back({{names_.Unique(name), DType::kF32, std::move(shape)},
                            Cat(launch_.args.back(), ".", name)});
    return temporaries_.back().first.name;
  }

  LoopLaunch MakeParts() {
    std::vector<For> loops, columns;
    std::vector<Expr> shape;
    auto open = [&](const std::string& axis, const Expr& size) {
      loops.push_back({axis, AxisRole::kFree, LoopKind::kSequential, size});
      shape.push_back(size);
      ranges_.SetAxis(axis, size);
    };
    part_ = names_.Unique("part");
    const std::string group = names_.Unique("g"), &t = reduce_->axis;
    for (const For& loop : free_) {
      const bool grouped = loop.axis == grouped_;
      open(grouped ? group : loop.axis,
           grouped ? IntLit(*AsInt(loop.extent) / group_) : loop.extent);
      at_.push_back(grouped ? FloorDiv(Axis(grouped_), group_) : Axis(loop.axis));
    }
    open(part_, IntLit(parts_));
    at_.push_back(Axis(part_));
    if (!grouped_.empty()) {
      open(grouped_, IntLit(group_));
      at_.push_back(Mod(Axis(grouped_), group_));
    }
    const Expr length = Simplify(CeilDiv(longest_, parts_ * kPartUnit) * kPartUnit, ranges_);
    const Expr first = Axis(part_) * length;
    auto place = [&](const std::string& name) -> Expr {
      if (name == grouped_) return Axis(group) * group_ + Axis(name);
      return name == t ? first + Axis(t) : nullptr;
    };
    const Expr live = Max(Min(length, Substitute(reduce_->extent, place) - first), IntLit(0));
    ranges_.SetAxis(t, live);
    Block body = MapExprs(SubstituteVars(reduce_->body, place),
                          [&](const Expr& e) { return Simplify(e, ranges_); });

    std::vector<Expr> at, own;
    for (const For& loop : loops) at.push_back(Axis(loop.axis));
    std::vector<Expr> whole = shape, element = at;
    for (const For& loop : values_) {
      columns.push_back({names_.Unique(loop.axis), loop.role, loop.kind, loop.extent});
      own.push_back(Axis(columns.back().axis));
      whole.push_back(loop.extent);
      element.push_back(own.back());
    }
    Expr value =
        own.empty() ? MakeVar(state_->name, DType::kF32) : MakeLoad(state_->name, DType::kF32, own);
    Block inner = {MakeStmt(*state_)};
    Block stores =
        InLoops(columns, {MakeStmt(Store{AddTemporary("parts", whole), element, value, nullptr})});
    if (state_->monoid == Monoid::kSoftmaxSum) {
      const std::string weight = names_.Unique("log_sum_exp");
      Expr score;  // of the update, as it is here
      WalkStmts(body, [&](const Accumulate& update) {
        if (update.name == state_->name) score = update.operands[0];
      });
      inner.push_back(MakeStmt(Accumulator{weight, Monoid::kLogSumExp, {}, {}}));
      body.push_back(MakeStmt(Accumulate{weight, {}, {score}, nullptr}));
      stores.push_back(MakeStmt(
          Store{AddTemporary("scores", shape), at, MakeVar(weight, DType::kF32), nullptr}));
    }
    const For reduce{t, reduce_->role, LoopKind::kSequential, live};
    inner.push_back(InLoops({reduce}, std::move(body)).front());
    absl::c_copy(stores, std::back_inserter(inner));
    LoopLaunch made =
        MakeLaunch(launch_.fn.fn.name, "in parts", InLoops(loops, std::move(inner)), true);
    for (const auto& [buffer, arg] : temporaries_)
      made.results.emplace_back(arg, ValueType{buffer.dtype, buffer.shape});
    return made;
  }

  LoopLaunch MakeCombination() {
    std::vector<Expr> element = at_, operands;
    element.insert(element.end(), update_->indices.begin(), update_->indices.end());
    for (size_t i = temporaries_.size(); i-- > 0;) {  // scores before parts
      operands.push_back(MakeLoad(temporaries_[i].first.name, DType::kF32, i == 0 ? element : at_));
    }
    std::vector<For> loops = values_;
    loops.insert(loops.begin(), {part_, AxisRole::kReduce, LoopKind::kSequential, IntLit(parts_)});
    Block inner = {MakeStmt(*state_)};
    const Stmt update = MakeStmt(Accumulate{state_->name, update_->indices, operands, nullptr});
    inner.push_back(InLoops(loops, {update}).front());
    absl::c_copy(after_, std::back_inserter(inner));
    LoopLaunch made = MakeLaunch(launch_.fn.fn.name + "_combine", "parts combined",
                                 InLoops(free_, std::move(inner)), false);
    made.results = launch_.results;
    return made;
  }

  const LoopLaunch& launch_;
  const SplitOptions& options_;
  RangeMap ranges_;
  std::vector<For> free_, values_;  // round the state; round its update, inside the reduction
  const Accumulator* state_ = nullptr;
  const For* reduce_ = nullptr;
  const Accumulate* update_ = nullptr;
  Block after_;
  Expr longest_;  // the reduction's extent at most, over symbols
  // Loads that vary along the reduction, and the axes that they vary with.
  std::vector<std::pair<const Load*, std::set<std::string>>> streamed_;
  std::string grouped_;  // the axis that is taken apart, or ""
  int64_t group_ = 1, parts_ = 0;
  NameSet names_;
  std::string part_;
  std::vector<Expr> at_;  // a part's place in the temporaries, for the combination
  std::vector<std::pair<BufferDecl, std::string>> temporaries_;  // and the values bound to them
};

}  // namespace

LoopModule SplitReductions(const LoopModule& module, const SplitOptions& options) {
  LoopModule result = module;
  for (LoopSegment& segment : result.segments) {
    std::vector<LoopLaunch> launches;
    for (LoopLaunch& launch : segment.ops) {
      std::vector<LoopLaunch> split = Splitter(launch, options).Run();
      if (split.empty()) split.push_back(std::move(launch));
      std::move(split.begin(), split.end(), std::back_inserter(launches));
    }
    segment.ops = std::move(launches);
  }
  return result;
}

}  // namespace hackc::passes
