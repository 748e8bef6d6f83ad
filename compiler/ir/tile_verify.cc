// SPDX-License-Identifier: MIT
#include "compiler/ir/tile_verify.h"

#include "compiler/ir/digits.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/stmt_verify.h"

namespace hackc::ir {
namespace {

class TileVerifier : public StmtVerifier {
 public:
  explicit TileVerifier(const TileFn& tile)
      : StmtVerifier({.name = "tile",
                      .holds = IsA<For, Let, Accumulator, Accumulate, Store, Alloc, Combine>,
                      .states_by_load = true},
                     tile.fn),
        schedule_(tile.schedule) {
    WalkStmts(
        tile.fn.body,
        [&](const For& loop) {
          split_ = split_ && loop.kind != LoopKind::kSequential;
          loops_.insert(loop.axis);
        },
        [&](const Accumulator& acc) { keeps_axes_ &= acc.monoid != Monoid::kSoftmaxSum; });
    keeps_axes_ = keeps_axes_ && !split_;
    level_.bounds = split_;
    level_.loops = {LoopKind::kSequential};
    if (split_) {
      level_.loops = {LoopKind::kGridX, LoopKind::kGridY, LoopKind::kGridZ, LoopKind::kSerial,
                      LoopKind::kLocal};
    }
  }

 protected:
  void Declare() override {
    const Schedule& s = schedule_;
    if (!IsPowerOfTwo(s.threads) || s.threads < 32 || s.threads > 1024) {
      Error("schedule", s.threads, " threads, expected a power of two from 32 to 1024");
    }
    if (s.cluster < 1 || s.split_reduce < 1 || s.min_blocks_per_sm < 1) {
      Error("schedule", "cluster ", s.cluster, ", split_reduce ", s.split_reduce,
            " and min_blocks_per_sm ", s.min_blocks_per_sm, ", expected 1 or more");
    }
    std::set<std::string> axes;
    for (const AxisSchedule& axis : s.axes) {
      if (!axes.insert(axis.axis).second)
        Error("schedule", "axis %", axis.axis, " is listed twice");
      if (keeps_axes_ && !loops_.contains(axis.axis))
        Error("schedule", "axis %", axis.axis, ", which is no loop");
      if (axis.steps < 1) Error("schedule", "axis %", axis.axis, ": ", axis.steps, " steps");
      if (!IsGrid(axis.outer) && axis.outer != LoopKind::kSerial) {
        Error("schedule", "axis %", axis.axis, ": the outer part is neither grid nor serial");
      }
      CheckDigits(axis.digits, Cat("axis %", axis.axis));
    }
    for (const StageSchedule& stage : s.stages) {
      if (!Find(stage.buffer))
        Error("schedule", "stage of @", stage.buffer, ", which is no buffer");
      if (keeps_axes_ && !loops_.contains(stage.axis))
        Error("schedule", "stage of @", stage.buffer, " along %", stage.axis, ", which is no loop");
      if (stage.depth < 1 || stage.padding < 0) {
        Error("schedule", "stage of @", stage.buffer, ": depth ", stage.depth, ", padding ",
              stage.padding);
      }
    }
  }

  void Check(const Stmt& s) override {
    if (const For* loop = As<For>(s)) CheckLoop(*loop);
    if (const Accumulator* acc = As<Accumulator>(s)) CheckLayout(acc->layout, acc->extents);
    if (const Alloc* alloc = As<Alloc>(s)) CheckAlloc(*alloc);
    if (const Combine* combine = As<Combine>(s)) CheckCombine(*combine);
    if (const Store* store = As<Store>(s); store && store->engine == CopyEngine::kRegisters) {
      if (store->cache != CacheHint::kNormal)
        Error("engine", "a hint to the caches stands on an asynchronous store");
    } else if (store) {
      const Load* load = As<Load>(store->value);
      const NameInfo* target = Find(store->buffer);
      const NameInfo* source = load ? Find(load->buffer) : nullptr;
      if (!target || !target->IsIn(MemorySpace::kShared) || !source ||
          source->kind != NameInfo::Kind::kGlobal || source->access != Access::kRead) {
        Error("engine",
              "an asynchronous store moves a plain load of a `read` buffer into shared memory");
      }
    }
  }

 private:
  void Error(RuleIn<kTileRules> rule, const auto&... parts) { Report(*rule, Cat(parts...)); }

  // Thread bits of the digits; reports what no digit may be.
  int CheckDigits(const std::vector<Digit>& digits, std::string_view where) {
    int bits = 0;
    for (const Digit& digit : digits) {
      // A matrix digit is the last one, after threads alone.
      const bool misplaced =
          &digit != &digits.back() && (digit.kind == Digit::Kind::kMatrix ||
                                       (IsMatrix(digits) && digit.kind != Digit::Kind::kThread));
      if (digit.extent < 1 || misplaced) {
        Error("digits", where, ": a digit of extent ", digit.extent);
      }
      if (digit.kind != Digit::Kind::kThread) continue;
      if (!IsPowerOfTwo(digit.extent) || !IsPowerOfTwo(digit.stride) ||
          int64_t{digit.extent} * digit.stride > schedule_.threads) {
        Error("digits", where, ": thread(", digit.extent, ", ", digit.stride,
              ") is not in a block of ", schedule_.threads, " threads");
        continue;
      }
      const int mask = (digit.extent - 1) * digit.stride;
      if (bits & mask) Error("digits", where, ": two digits use the same bits of the thread index");
      bits |= mask;
    }
    return bits;
  }

  void CheckLoop(const For& loop) {
    if (loop.kind != LoopKind::kLocal) {
      if (!loop.digits.empty()) Error("digits", "only local loops have digits");
    } else if (AsInt(loop.extent) != CoordinateCount(loop.digits)) {
      Error("digits", "digits of ", CoordinateCount(loop.digits), " coordinates, extent ",
            Print(loop.extent));
    }
    const int bits = CheckDigits(loop.digits, "loop");
    if (IsMatrix(loop.digits) && loop.role != AxisRole::kContract)
      Error("digits", "a matrix digit stands on a contract axis");
    for (size_t i = 0; i + 1 < nest_.size(); ++i) {
      const For* outer = As<For>(nest_[i]);
      if (!outer) continue;
      if (IsGrid(loop.kind) && !IsGrid(outer->kind))
        Error("grid", "stands in %", outer->axis, ", which is no grid loop");
      if (bits & ThreadMask(outer->digits))
        Error("digits", "uses bits of the thread index that %", outer->axis, " uses");
    }
  }

  static int64_t ValueOf(int64_t extent) { return extent; }
  static int64_t ValueOf(const Expr& extent) { return AsInt(extent).value_or(0); }

  void CheckLayout(const std::vector<std::vector<Digit>>& layout, const auto& extents) {
    if (layout.empty()) return;
    if (layout.size() != extents.size()) {
      return Error("layout", "layout of ", layout.size(), " dimensions for ", extents.size());
    }
    int bits = 0;
    for (size_t i = 0; i < layout.size(); ++i) {
      const int64_t extent = ValueOf(extents[i]);
      if (CoordinateCount(layout[i]) != extent) {
        Error("layout", "digits of ", CoordinateCount(layout[i]), " coordinates for dimension ", i,
              " of ", extent);
      }
      const int own = CheckDigits(layout[i], Cat("dimension ", i));
      if (bits & own) Error("layout", "two dimensions use the same bits of the thread index");
      bits |= own;
    }
  }

  void CheckAlloc(const Alloc& alloc) {
    if (alloc.space == MemorySpace::kShared && !alloc.layout.empty())
      Error("layout", "shared memory has no layout");
    if (alloc.padding < 0 || !IsPowerOfTwo(alloc.alignment) ||
        alloc.alignment < SizeOf(alloc.dtype)) {
      Error("layout", "padding ", alloc.padding, ", alignment ", alloc.alignment);
    }
    const bool ring = alloc.space == MemorySpace::kShared && !alloc.extents.empty() &&
                      alloc.extents[0] == alloc.slots;
    if (alloc.slots < 1 || (alloc.slots > 1 && !ring)) {
      Error("layout", Cat(alloc.slots, " slots, which the first dimension does not count"));
    }
    CheckLayout(alloc.layout, alloc.extents);
  }

  void CheckCombine(const Combine& combine) {
    const NameInfo* info = Find(combine.name);
    if (!info || (!info->IsState() && !info->IsIn(MemorySpace::kLocal)))
      return Error("combine", "@", combine.name, " is neither a state nor a local array");
    if (info->IsState() && info->monoid != combine.monoid) {
      Error("combine", "combines by ", Name(combine.monoid), ", the state is a ",
            Name(info->monoid));
    }
    if (combine.thread_mask <= 0 || combine.thread_mask >= schedule_.threads) {
      Error("combine", "thread mask ", combine.thread_mask, " in a block of ", schedule_.threads,
            " threads");
    }
  }

  const Schedule& schedule_;
  std::set<std::string> loops_;
  bool keeps_axes_ = true;  // no pass replaces loops by others before they are split
  bool split_ = true;       // no axis is left as it was at Loop level
};

}  // namespace

std::vector<std::string> VerifyTile(const TileFn& fn) { return TileVerifier(fn).Run(); }

}  // namespace hackc::ir
