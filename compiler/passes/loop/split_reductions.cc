// SPDX-License-Identifier: MIT
#include "compiler/passes/loop/split_reductions.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "compiler/ir/ranges.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/simplify.h"
#include "compiler/support/cat.h"

namespace hackc::passes {
namespace {

using namespace ir;  // NOLINT

constexpr int64_t kPartUnit = 64;  // keys that a block takes at a time

Block MapAxis(const Block& block, const std::string& axis, const Expr& value) {
  return SubstituteVars(block,
                        [&](const std::string& name) { return name == axis ? value : nullptr; });
}

bool VariesWith(const Expr& e, const std::string& axis) {
  std::vector<std::string> names = FreeVars(e);
  return std::find(names.begin(), names.end(), axis) != names.end();
}

class Splitter {
 public:
  Splitter(const LoopLaunch& launch, const SplitOptions& options)
      : launch_(launch), options_(options), ranges_(launch.fn.fn.symbols) {}

  // Both launches, or nothing where the launch stays as it is.
  std::vector<LoopLaunch> Run() {
    if (!FindReduction()) return {};
    FindGroups();
    if (!WorthIt()) return {};
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
      free_.push_back(loop);
      ranges_.SetAxis(loop->axis, loop->extent);
      block = &loop->body;
    }
    if (block->size() < 3) return false;
    state_ = As<Accumulator>(block->front());
    reduce_ = As<For>((*block)[1]);
    if (!state_ || !reduce_ || reduce_->role == AxisRole::kFree) return false;
    after_.assign(block->begin() + 2, block->end());
    ranges_.SetAxis(reduce_->axis, reduce_->extent);
    // One update of it, with the loops round it; nothing else lives on after the loop.
    const Block* body = &reduce_->body;
    while (!update_) {
      const For* inner = nullptr;
      for (const Stmt& stmt : *body) {
        const auto* found = As<Accumulate>(stmt);
        if (found && found->name == state_->name) update_ = found;
        if (const For* loop = As<For>(stmt); loop && loop->role == AxisRole::kFree) inner = loop;
      }
      if (update_) break;
      if (!inner) return false;
      values_.push_back(inner);
      body = &inner->body;
    }
    // What the longest row asks for; of a length that is read from memory, its limit.
    const Expr limited = WithoutLoads(reduce_->extent);
    longest_ = Substitute(limited, [&](const std::string& name) -> Expr {
      Expr extent = ranges_.FindExtent(name);
      return extent ? extent - 1 : nullptr;
    });
    return Loads(longest_).empty() && FreeVars(longest_).empty() &&
           ProveLessEqual(limited, longest_, ranges_) && state_->extents.size() == values_.size();
  }

  // The last free axis that the loads along the reduction use as `axis // n` alone, or not at all.
  void FindGroups() {
    for (const For* loop : free_) {
      std::optional<int64_t> size = GroupSize(*loop);
      if (!size) continue;
      grouped_ = loop;
      group_ = *size;
    }
  }

  std::optional<int64_t> GroupSize(const For& loop) const {
    std::set<int64_t> sizes;
    bool alone = true;
    for (const Load* load : StreamedLoads()) {
      for (const Expr& index : load->indices) {
        Expr rest = Rewrite(index, [&](const Expr& node) -> Expr {
          const auto* binary = As<Binary>(node);
          const auto* var =
              binary && binary->op == BinaryOp::kFloorDiv ? As<Var>(binary->a) : nullptr;
          auto size = var && var->name == loop.axis ? AsInt(binary->b) : std::nullopt;
          if (!size) return nullptr;
          sizes.insert(*size);
          return IntLit(0);
        });
        alone &= !VariesWith(rest, loop.axis);
      }
    }
    const int64_t extent = AsInt(loop.extent).value_or(0);
    if (alone && sizes.empty() && extent > 1)
      return extent;  // all of the axis shares what is loaded
    if (!alone || sizes.size() != 1 || extent % *sizes.begin() != 0) return std::nullopt;
    return *sizes.begin();
  }

  // Loads that vary along the reduction: what makes it long.
  std::vector<const Load*> StreamedLoads() const {
    std::vector<const Load*> loads;
    WalkExprs(reduce_->body, [&](const Expr& e) {
      for (const Load* load : Loads(e)) {
        bool varies =
            std::any_of(load->indices.begin(), load->indices.end(),
                        [&](const Expr& index) { return VariesWith(index, reduce_->axis); });
        if (varies) loads.push_back(load);
      }
    });
    return loads;
  }

  int64_t Most(const Expr& extent) const {
    return std::max<int64_t>(1, Bounds(extent, ranges_).max);
  }

  bool WorthIt() {
    const int64_t longest = Most(reduce_->extent);
    std::map<std::string, Expr> inner;
    WalkStmts(reduce_->body, [&](const Stmt& stmt) {
      if (const For* loop = As<For>(stmt)) inner[loop->axis] = loop->extent;
    });
    // What one block would read, and how often that differs between blocks.
    double block = 0, all = 0;
    for (const Load* load : StreamedLoads()) {
      double bytes = static_cast<double>(SizeOf(load->dtype)) * static_cast<double>(longest);
      std::set<std::string> axes;
      for (const Expr& index : load->indices) {
        for (const std::string& name : FreeVars(index)) axes.insert(name);
      }
      for (const std::string& axis : axes) {
        if (auto it = inner.find(axis); it != inner.end())
          bytes *= static_cast<double>(Most(it->second));
      }
      block += bytes;
      for (const For* loop : free_) {
        if (!axes.count(loop->axis)) continue;
        bytes *= static_cast<double>(Most(loop->extent)) /
                 (loop == grouped_ ? static_cast<double>(group_) : 1);
      }
      all += bytes;
    }
    if (block < static_cast<double>(options_.least_bytes)) return false;
    // Enough parts for the smallest grid.
    double smallest = 1, results = 1;
    for (const For* loop : free_) {
      const Range extent = Bounds(loop->extent, ranges_);
      smallest *= static_cast<double>(loop == grouped_ ? extent.min / group_
                                                       : std::max<int64_t>(1, extent.min));
      results *= static_cast<double>(Most(loop->extent));
    }
    for (const For* loop : values_) results *= static_cast<double>(Most(loop->extent));
    const double wanted = std::ceil(options_.blocks / smallest);
    const double affordable = all / 2 / (2 * 4 * results);
    parts_ = std::min({static_cast<int64_t>(wanted), static_cast<int64_t>(affordable),
                       (longest + kPartUnit - 1) / kPartUnit});
    return parts_ > 1;
  }

  std::string Fresh(const std::string& name) {
    if (used_.empty()) {
      for (const BufferDecl& buffer : launch_.fn.fn.buffers) used_.insert(buffer.name);
      RenameAll(launch_.fn.fn.body,
                [&](const std::string& each) { return used_.insert(each), each; });
    }
    std::string fresh = name;
    for (int i = 2; !used_.insert(fresh).second; ++i) fresh = Cat(name, i);
    return fresh;
  }

  static Block InLoops(const std::vector<For>& loops, Block body) {
    for (size_t i = loops.size(); i-- > 0;) {
      For loop = loops[i];
      loop.body = std::move(body);
      body = {MakeStmt(std::move(loop))};
    }
    return body;
  }

  // A launch with the buffers that `body` names, those of `written` last.
  LoopLaunch MakeLaunch(const std::string& name, const std::string& what, Block body,
                        const std::vector<std::string>& written) {
    LoopLaunch made;
    Function& fn = made.fn.fn;
    fn.name = name;
    fn.computes = Cat(launch_.fn.fn.computes, ", ", what);
    fn.symbols = launch_.fn.fn.symbols;
    fn.body = std::move(body);
    std::set<std::string> named;
    RenameAll(fn.body, [&](const std::string& each) { return named.insert(each), each; });
    auto add = [&](const BufferDecl& buffer, const std::string& arg, bool write) {
      made.args.push_back(arg);
      fn.buffers.push_back(buffer);
      if (buffer.access != Access::kReadWrite)
        fn.buffers.back().access = write ? Access::kWrite : Access::kRead;
    };
    auto is_written = [&](const std::string& each) {
      return std::find(written.begin(), written.end(), each) != written.end();
    };
    for (bool write : {false, true}) {
      for (size_t i = 0; i < launch_.args.size(); ++i) {
        const BufferDecl& buffer = launch_.fn.fn.buffers[i];
        const bool own = buffer.access != Access::kRead;
        if (named.count(buffer.name) && own == write) add(buffer, launch_.args[i], own);
      }
      for (const auto& [buffer, arg] : temporaries_) {
        if (named.count(buffer.name) && is_written(buffer.name) == write) add(buffer, arg, write);
      }
    }
    return made;
  }

  LoopLaunch MakeParts() {
    const std::string part = Fresh("part");
    std::vector<For> loops;
    std::vector<Expr> shape;
    Block body = reduce_->body;
    Expr extent = reduce_->extent;
    std::string row;
    auto open = [&](const std::string& axis, const Expr& size) {
      loops.push_back({axis, AxisRole::kFree, LoopKind::kSequential, size, {}, {}});
      at_.push_back(Axis(axis));
      shape.push_back(size);
      ranges_.SetAxis(axis, size);
    };
    for (const For* loop : free_) {
      if (loop == grouped_) {
        const std::string group = Fresh("g");
        row = loop->axis;
        open(group, IntLit(*AsInt(loop->extent) / group_));
        Expr whole = Axis(group) * group_ + Axis(row);
        ranges_.SetAxis(row, IntLit(group_));
        body = MapAxis(body, row, whole);
        extent = Substitute(extent,
                            [&](const std::string& name) { return name == row ? whole : nullptr; });
      } else {
        open(loop->axis, loop->extent);
      }
    }
    open(part, IntLit(parts_));
    if (grouped_) open(row, IntLit(group_));

    const std::string& t = reduce_->axis;
    Expr length = Simplify(CeilDiv(longest_, parts_ * kPartUnit) * kPartUnit, ranges_);
    Expr first = Axis(part) * length;
    Expr live = Max(Min(length, extent - first), IntLit(0));
    body = MapAxis(body, t, first + Axis(t));
    ranges_.SetAxis(t, live);
    body = MapExprs(body, [&](const Expr& e) { return Simplify(e, ranges_); });

    std::vector<Expr> results = at_;
    Block inner = {MakeStmt(*state_)};
    for (const For* loop : values_) {
      shape.push_back(loop->extent);
      results.push_back(Axis(Fresh(loop->axis)));
    }
    AddTemporary("parts", ".parts", shape);
    const bool softmax = state_->monoid == Monoid::kSoftmaxSum;
    if (softmax) {
      weight_ = Fresh("log_sum_exp");
      inner.push_back(MakeStmt(Accumulator{weight_, Monoid::kLogSumExp, {}, {}}));
      body.push_back(MakeStmt(Accumulate{weight_, {}, {ScoreIn(body)}, nullptr}));
      shape.resize(at_.size());
      AddTemporary("scores", ".scores", shape);
    }
    inner.push_back(MakeStmt(For{t, reduce_->role, LoopKind::kSequential, live, {}, body}));
    std::vector<For> columns;
    std::vector<Expr> own(results.begin() + static_cast<int64_t>(at_.size()), results.end());
    for (size_t i = 0; i < values_.size(); ++i) {
      columns.push_back({As<Var>(own[i])->name,
                         AxisRole::kFree,
                         LoopKind::kSequential,
                         values_[i]->extent,
                         {},
                         {}});
    }
    Expr value =
        own.empty() ? MakeVar(state_->name, DType::kF32) : MakeLoad(state_->name, DType::kF32, own);
    Block store =
        InLoops(columns, {MakeStmt(Store{temporaries_[0].first.name, results, value, nullptr})});
    inner.insert(inner.end(), store.begin(), store.end());
    std::vector<std::string> written = {temporaries_[0].first.name};
    if (softmax) {
      written.push_back(temporaries_[1].first.name);
      inner.push_back(MakeStmt(Store{written[1], at_, MakeVar(weight_, DType::kF32), nullptr}));
    }
    LoopLaunch made =
        MakeLaunch(launch_.fn.fn.name, "in parts", InLoops(loops, std::move(inner)), written);
    for (const auto& [buffer, arg] : temporaries_)
      made.results.emplace_back(arg, ValueType{buffer.dtype, buffer.shape});
    part_ = part;
    return made;
  }

  // The score of the update, as `body` has it now.
  Expr ScoreIn(const Block& body) const {
    Expr score;
    WalkStmts(body, [&](const Stmt& stmt) {
      const auto* update = As<Accumulate>(stmt);
      if (update && update->name == state_->name) score = update->operands[0];
    });
    return score;
  }

  void AddTemporary(const std::string& name, const std::string& suffix,
                    const std::vector<Expr>& shape) {
    const std::string& value = launch_.args.back();
    temporaries_.push_back(
        {BufferDecl{Fresh(name), DType::kF32, shape, Access::kRead}, value + suffix});
  }

  LoopLaunch MakeCombination() {
    std::vector<For> loops;
    for (const For* loop : free_) loops.push_back(*loop);
    std::vector<Expr> at = at_;
    if (grouped_) {  // parts are indexed by group and row
      for (Expr& index : at) {
        const std::string name = As<Var>(index)->name;
        if (name == grouped_->axis) index = Mod(Axis(name), group_);
        const bool free = std::any_of(free_.begin(), free_.end(),
                                      [&](const For* loop) { return loop->axis == name; });
        if (!free && name != part_) index = FloorDiv(Axis(grouped_->axis), group_);
      }
    }
    std::vector<Expr> results = at;
    results.insert(results.end(), update_->indices.begin(), update_->indices.end());
    Expr value = MakeLoad(temporaries_[0].first.name, DType::kF32, results);
    std::vector<Expr> operands = {value};
    if (state_->monoid == Monoid::kSoftmaxSum) {
      operands = {MakeLoad(temporaries_[1].first.name, DType::kF32, at), value};
    }
    std::vector<For> columns;
    for (const For* loop : values_) columns.push_back(*loop);
    Block body =
        InLoops(columns, {MakeStmt(Accumulate{state_->name, update_->indices, operands, nullptr})});
    Block inner = {
        MakeStmt(*state_),
        MakeStmt(For{
            part_, AxisRole::kReduce, LoopKind::kSequential, IntLit(parts_), {}, std::move(body)})};
    inner.insert(inner.end(), after_.begin(), after_.end());
    LoopLaunch made = MakeLaunch(launch_.fn.fn.name + "_combine", "parts combined",
                                 InLoops(loops, std::move(inner)), {});
    made.results = launch_.results;
    return made;
  }

  const LoopLaunch& launch_;
  const SplitOptions& options_;
  RangeMap ranges_;
  std::vector<const For*> free_,
      values_;  // round the state; round its update, inside the reduction
  const Accumulator* state_ = nullptr;
  const For* reduce_ = nullptr;
  const Accumulate* update_ = nullptr;
  Block after_;
  Expr longest_;  // the reduction's extent at most, over symbols
  const For* grouped_ = nullptr;
  int64_t group_ = 1, parts_ = 0;
  std::set<std::string> used_;
  std::string part_, weight_;
  std::vector<Expr> at_;  // a part's place in the temporaries
  std::vector<std::pair<BufferDecl, std::string>>
      temporaries_;  // and the values that they are bound to
};

}  // namespace

LoopModule SplitReductions(const LoopModule& module, const SplitOptions& options) {
  LoopModule result = module;
  for (LoopSegment& segment : result.segments) {
    std::vector<LoopLaunch> launches;
    for (LoopLaunch& launch : segment.ops) {
      std::vector<LoopLaunch> split = Splitter(launch, options).Run();
      if (split.empty()) {
        launches.push_back(std::move(launch));
      } else {
        std::move(split.begin(), split.end(), std::back_inserter(launches));
      }
    }
    segment.ops = std::move(launches);
  }
  return result;
}

}  // namespace hackc::passes
