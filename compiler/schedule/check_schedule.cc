// SPDX-License-Identifier: MIT
#include "compiler/schedule/check_schedule.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "compiler/ir/digits.h"
#include "compiler/ir/ranges.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/simplify.h"
#include "compiler/ir/stmt_verify.h"
#include "compiler/ir/tile_verify.h"
#include "compiler/support/cat.h"
#include "compiler/support/lookup.h"

namespace hackc::schedule {
namespace {

using namespace ir;  // NOLINT

constexpr int64_t kMaxRegisters = 1024;  // elements of one array, and trips of an unrolled loop

// A loop round the current statement, as the schedule cuts it. A softmax axis is two of them: its
// chunks, and the scores or the values of one.
struct Level {
  std::string axis;
  AxisRole role = AxisRole::kFree;
  Expr extent;
  AxisSchedule cut;
  bool trips = false;       // more than one tile
  bool holds_grid = false;  // a grid loop is all that it holds: stages are filled in there

  int64_t Local() const { return CoordinateCount(cut.digits); }
};

struct State {
  size_t depth = 0;  // loops round its declaration
  Monoid monoid = Monoid::kSum;
  std::vector<Expr> extents;
  std::vector<std::vector<Digit>> own;  // digits of the axes that index it, once they are known
  int64_t registers = 1;
  int partial_over = 0;  // bits of the thread index
};

using Tile = std::vector<std::pair<std::string, int64_t>>;  // axes and how much of each

class Checker {
 public:
  Checker(const LoopFn& loop, const Schedule& schedule, const Target& target)
      : fn_(loop.fn),
        schedule_(schedule),
        target_(target),
        ranges_(fn_.symbols),
        taken_(TakenNames(fn_)) {}

  absl::Status Run() {
    const std::vector<std::string> errors = VerifyTile({fn_, schedule_});
    if (!errors.empty()) return absl::InvalidArgumentError(errors.front());
    const Schedule& s = schedule_;
    Expect(s.threads <= target_.max_threads_per_block && s.min_blocks_per_sm <= 32 &&
               s.min_blocks_per_sm * s.threads <= target_.max_threads_per_multiprocessor,
           s.min_blocks_per_sm, " blocks of ", s.threads, " threads, expected what ", target_.arch,
           " holds: blocks of ", target_.max_threads_per_block, ", up to 32 of them and ",
           target_.max_threads_per_multiprocessor, " threads on a multiprocessor");
    Expect(s.instruction != MatrixInstruction::kWgmma && s.recipe == PrecisionRecipe::kNative &&
               s.cluster == 1 && s.split_reduce == 1,
           "wgmma, split3, a cluster or a split reduction, which no pass makes");
    WalkStmts(fn_.body, [&](const Store& store) { written_.insert(store.buffer); });
    Visit(fn_.body, true);
    for (const AxisSchedule& axis : s.axes) {
      Expect(names_.count(axis.axis), "axis %", axis.axis, ", which is no loop");
    }
    for (const StageSchedule& stage : s.stages) {
      Expect(names_.count(stage.axis) && !written_.count(stage.buffer), "stage of @", stage.buffer,
             " along %", stage.axis, ", expected a loop and a buffer that nothing is written to");
    }
    Expect(shared_bytes_ <= target_.shared_bytes_per_block, shared_bytes_,
           " bytes of shared memory, expected at most ", target_.shared_bytes_per_block);
    return error_.empty() ? absl::OkStatus()
                          : absl::InvalidArgumentError(Cat(fn_.name, ": schedule: ", error_));
  }

 private:
  void Expect(bool holds, const auto&... parts) {
    if (!holds && error_.empty()) error_ = Cat(parts...);
  }

  AxisSchedule ScheduleOf(const std::string& axis, const AxisSchedule& otherwise = {}) const {
    const AxisSchedule* entry = schedule_.Find(axis);
    return entry ? *entry : otherwise;
  }

  // Of a value that all axes spread: in a thread, or in all of them.
  int64_t Registers() const { return Count(RegisterCount); }
  int64_t Count(int64_t (*of)(const std::vector<Digit>&)) const {
    int64_t count = 1;
    for (const Level& level : levels_) count = SaturatedProduct(count, of(level.cut.digits));
    return count;
  }

  void UseShared(int64_t elements, int64_t bytes_each) {
    const int64_t bytes = SaturatedProduct(elements, bytes_each);
    shared_bytes_ = SaturatedSum(shared_bytes_, SaturatedSum(bytes, 15) / 16 * 16);
  }

  // Between warps, every thread's part of a sum goes through shared memory.
  void Exchange(int mask, int64_t registers) {
    if ((mask & ~31) != 0) UseShared(SaturatedProduct(registers, schedule_.threads), 4);
  }

  // ---- loops ------------------------------------------------------------------------------------
  void Enter(Level level, bool alone = false) {
    const auto& [axis, role, extent, cut, ignored, also_ignored] = level;
    names_.insert(axis);
    const int64_t tile = TileOf(cut);
    Expect(SaturatedSum(Bounds(extent, ranges_).max, tile) < INT32_MAX, "axis %", axis,
           ": a tile of ", tile, ", expected indices of 32 bits");
    const Expr trips = Simplify(CeilDiv(extent, std::clamp<int64_t>(tile, 1, INT32_MAX)), ranges_);
    level.trips = AsInt(trips) != 1;
    const bool grid = cut.outer != LoopKind::kSerial && level.trips;
    if (grid) {
      const Range blocks = Bounds(trips, ranges_);
      int64_t& all = grid_[static_cast<int>(cut.outer) - static_cast<int>(LoopKind::kGridX)];
      all = SaturatedProduct(all, blocks.max);
      Expect(role == AxisRole::kFree && alone && OverSymbols(extent) && blocks.min > 0 &&
                 all <= (cut.outer == LoopKind::kGridX ? INT32_MAX : 65535),
             "axis %", axis, ": on the grid, with ", Print(extent),
             " coordinates; expected a free axis over symbols, alone in its place, 1 to 65535 "
             "blocks along y and z");
    }
    for (const Level& outer : levels_) {
      Expect((ThreadMask(cut.digits) & ThreadMask(outer.cut.digits)) == 0, "axis %", axis,
             ": digits use bits of the thread index that those of %", outer.axis, " round it use");
      Expect(
          !grid || (outer.cut.steps == 1 && (outer.cut.outer != LoopKind::kSerial || !outer.trips)),
          "axis %", axis, ": on the grid inside of %", outer.axis,
          ", expected a grid axis without steps round it");
      if (outer.Local() == 1) continue;
      Expect(
          Grows(Inlined(extent), outer.axis) &&
              (schedule_.instruction == MatrixInstruction::kFma || FreeVars(outer.extent).empty()),
          "axis %", axis, ": ends at ", Print(extent), ", expected an end that grows with %",
          outer.axis, " or does not vary with it, whose coordinates run together");
    }
    ranges_.SetAxis(axis, extent);
    levels_.push_back(level);
    const int64_t registers = Registers();
    Expect(registers <= kMaxRegisters, "axis %", axis, ": ", registers,
           " elements of a thread with the axes round it, expected at most ", kMaxRegisters);
  }

  void Leave() {
    levels_.pop_back();
    for (auto& [name, state] : states_) {
      if (state.depth != levels_.size()) continue;
      Exchange(state.partial_over, state.registers);
      state.partial_over = 0;
    }
  }

  // `alone`: nothing but loops stands round and in this place.
  void Visit(const Block& block, bool alone) {
    alone = alone && block.size() == 1;
    for (const Stmt& stmt : block) {
      if (const auto* loop = As<For>(stmt)) {
        const Accumulate* stream = loop->role == AxisRole::kFree ? nullptr : Streams(loop->body);
        const For* inner = loop->body.size() == 1 ? As<For>(loop->body.front()) : nullptr;
        const bool holds_grid = inner && ScheduleOf(inner->axis).outer != LoopKind::kSerial;
        if (stream) {
          Softmax(*loop, *stream);
        } else {
          Enter({loop->axis, loop->role, loop->extent, ScheduleOf(loop->axis), false, holds_grid},
                alone);
          Visit(loop->body, alone);
          Leave();
        }
      } else if (const auto* update = As<Accumulate>(stmt)) {
        Update(*update);
      } else {
        Expect(!MatrixLevel() || in_values_, "axis %", levels_.empty() ? "" : levels_.back().axis,
               ": matrix digits, expected nothing but sums in its loop");
      }
      if (const auto* let = As<Let>(stmt)) lets_[let->name] = let->value;
      if (const auto* acc = As<Accumulator>(stmt)) {
        const std::vector<std::vector<Digit>> own(acc->extents.size());
        states_[acc->name] = {levels_.size(), acc->monoid, acc->extents, own, Registers()};
      }
      if (As<Let>(stmt) || As<Store>(stmt)) WalkExprs({stmt}, [&](const Expr& e) { Read(e); });
    }
  }

  // The update of a softmax state anywhere in `block`, or null; two of them are refused.
  const Accumulate* Streams(const Block& block) {
    const Accumulate* found = nullptr;
    WalkStmts(block, [&](const Accumulate& update) {
      const State* state = FindOrNull(states_, update.name);
      if (!state || state->monoid != Monoid::kSoftmaxSum) return;
      Expect(found == nullptr, "softmax sums %", update.name, " and another in one loop");
      found = &update;
    });
    return found;
  }

  // Chunk by chunk: scores, then weights in their layout, then the weighted values.
  void Softmax(const For& loop, const Accumulate& stream) {
    const AxisSchedule scores = ScheduleOf(loop.axis);
    const int64_t chunk = TileOf(scores);
    const std::string value_axis = taken_.Unique(loop.axis + "_value");
    const AxisSchedule values =
        ScheduleOf(value_axis, {"", LoopKind::kSerial, static_cast<int>(chunk), {}});
    names_.insert(value_axis);
    Expect(!scores.axis.empty() && scores.outer == LoopKind::kSerial &&
               values.outer == LoopKind::kSerial && chunk <= (1 << 16) &&
               chunk % TileOf(values) == 0,
           "axis %", loop.axis, ": chunks of ", chunk, ", tiles of ", TileOf(values),
           " values; expected a serial axis whose chunk is whole tiles of %", value_axis);
    if (!error_.empty()) return;
    const size_t outer = std::exchange(streamed_, levels_.size() + 1);
    Enter({loop.axis, AxisRole::kFree, CeilDiv(loop.extent, chunk), {}});
    const int64_t rows = Count(CoordinateCount);
    auto part = [&](AxisRole role, const AxisSchedule& cut, bool of_values) {
      in_values_ = of_values;
      Enter({loop.axis, role, IntLit(chunk), cut});
      for (const Stmt& stmt : loop.body) {
        if ((Streams({stmt}) != nullptr) == of_values) Visit({stmt}, false);
      }
      Leave();
      in_values_ = false;
    };
    score_ = stream.operands[0];
    part(AxisRole::kReduce, scores, false);
    for (int i = 0; i < 2; ++i)  // maximum, sum
      Exchange(ThreadMask(scores.digits), Registers());
    for (const Load* load : Loads(Inlined(loop.extent))) {
      for (const Expr& index : load->indices)
        absl::c_copy(FreeVars(index), std::back_inserter(guards_of_values_));
    }
    score_ = nullptr;
    part(AxisRole::kContract, values, true);
    guards_of_values_.clear();
    const bool fragments = IsMatrix(values.digits) && values.digits.size() == 1 &&
                           scores.digits == FragmentColumns(values.steps);
    if (scores.steps > 1) UseShared(SaturatedProduct(rows, chunk + 4), 4);
    if (scores.steps > 1 || !(fragments || (values.steps == 1 && scores.digits == values.digits))) {
      UseShared(SaturatedProduct(rows, chunk + 8), 4);
    }
    Leave();
    streamed_ = outer;
  }

  // ---- values -----------------------------------------------------------------------------------
  Expr Inlined(const Expr& e) const {
    return Substitute(e, [&](const std::string& name) -> Expr {
      const Expr* value = FindOrNull(lets_, name);
      return value ? Inlined(*value) : nullptr;
    });
  }

  void Read(const Expr& e) {
    Walk(e, [&](const Expr& node) {
      const auto* load = As<Load>(node);
      if (!load) return;
      if (states_.count(load->buffer)) Index(load->buffer, load->indices);
      for (const StageSchedule& stage : schedule_.stages) {
        if (stage.buffer == load->buffer) Fill(stage, node);
      }
    });
  }

  // A dimension of a state is spread as the axes are that index it.
  void Index(const std::string& name, const std::vector<Expr>& indices) {
    State& state = states_.at(name);
    for (size_t i = 0; i < indices.size(); ++i) {
      const auto* var = As<Var>(indices[i]);
      const AxisSchedule cut = ScheduleOf(var ? var->name : "");
      const bool first = state.own[i].empty();
      Expect(cut.steps == 1 && CoordinateCount(cut.digits) == AsInt(state.extents[i]) &&
                 (first || state.own[i] == cut.digits),
             "state %", name, " is indexed by ", Print(indices[i]), ", expected an axis of ",
             Print(state.extents[i]), " digits, the same wherever it is indexed");
      if (!first) continue;
      state.own[i] = cut.digits;
      state.registers = SaturatedProduct(state.registers, RegisterCount(cut.digits));
    }
  }

  void Update(const Accumulate& update) {
    State& state = states_.at(update.name);
    if (state.monoid == Monoid::kLogSumExp) {
      return Expect(score_ && Equal(score_, update.operands[0]), "log_sum_exp %", update.name,
                    ", expected a softmax sum of the same scores in its loop");
    }
    // Chunks hold keys that no row sees, and leave others out.
    Expect(state.monoid == Monoid::kSoftmaxSum || state.depth >= streamed_, "sum %", update.name,
           ", expected a loop of its own, not that of a softmax sum");
    std::vector<Expr> operands = update.operands;
    for (Expr& operand : operands) operand = Inlined(operand);
    if (state.monoid == Monoid::kSoftmaxSum) {
      operands.erase(operands.begin());
      for (const std::string& name : FreeVars(operands.front()))
        Expect(!states_.count(name), "softmax sum %", update.name, " of %", name, ", a sum itself");
      for (const std::string& name : FreeVars(Inlined(update.guard)))
        Expect(absl::c_none_of(update.indices, [&](const Expr& e) { return Uses(e, name); }),
               "softmax sum %", update.name, " with a guard over %", name,
               ", expected one that its columns share");
    }
    for (const Expr& operand : operands) Read(operand);
    if (update.guard) Read(update.guard);
    Index(update.name, update.indices);
    for (size_t i = state.depth; i < levels_.size(); ++i) {
      const bool kept =
          absl::c_any_of(update.indices, [&](const Expr& e) { return Uses(e, levels_[i].axis); });
      if (!kept) state.partial_over |= ThreadMask(levels_[i].cut.digits);
    }
    if (MatrixLevel() != nullptr) Matrix(update, state, operands.front());
  }

  // ---- staging ----------------------------------------------------------------------------------
  // Index of the level in whose loop `stage` is filled.
  std::optional<size_t> FilledAt(const StageSchedule& stage) const {
    for (size_t at = 0; at < levels_.size(); ++at) {
      if (levels_[at].axis != stage.axis) continue;
      while (at + 1 < levels_.size() && levels_[at].holds_grid) ++at;
      return at;
    }
    return std::nullopt;
  }

  // What `stage` keeps of a load, outermost axis first; empty where it keeps nothing.
  Tile Staged(const StageSchedule& stage, const Expr& node) const {
    const Load& load = *As<Load>(node);
    const std::optional<size_t> at = FilledAt(stage);
    if (!at || !Uses(node, stage.axis)) return {};
    Tile tile;
    std::set<std::string> seen;
    for (const Expr& index : load.indices) {
      for (const std::string& name : FreeVars(index)) {
        if (!seen.insert(name).second) continue;
        int64_t extent = 0;
        for (const Level& level : levels_) {
          if (level.axis != name) continue;
          int64_t covered = TileOf(level.cut);
          if (&level > &levels_[*at]) {
            const auto all = AsInt(level.extent);
            if (!all) return {};
            covered *= (*all + covered - 1) / covered;
          }
          extent = SaturatedProduct(std::max<int64_t>(extent, 1), covered);
        }
        if (extent == 0) return {};  // a value made inside of the loops
        if (extent > 1) tile.emplace_back(name, extent);
      }
    }
    // What only a guard depends on is one value for the whole tile; values are guarded by the end
    // of their axis.
    std::vector<std::string> guards = guards_of_values_;
    if (load.guard) absl::c_copy(FreeVars(load.guard), std::back_inserter(guards));
    for (const std::string& name : guards) {
      if (seen.count(name)) continue;
      const bool constant = std::any_of(
          levels_.begin(), levels_.begin() + *at + 1,
          [&](const Level& level) { return level.axis == name && TileOf(level.cut) == 1; });
      if (!constant) return {};
    }
    return tile;
  }

  void Fill(const StageSchedule& stage, const Expr& node) {
    const Tile tile = Staged(stage, node);
    if (tile.empty() || !filled_.insert(Cat(stage.axis, in_values_, Print(node))).second) return;
    const Level& level = levels_[*FilledAt(stage)];
    const int size = SizeOf(node->dtype);
    std::vector<int64_t> extents;
    for (const auto& [axis, extent] : tile) extents.push_back(extent);
    int64_t elements = extents.back() + stage.padding;
    for (size_t i = 1; i < extents.size(); ++i)
      elements = SaturatedProduct(elements, extents[i - 1]);
    if (stage.depth > 1 && stage.engine == CopyEngine::kCpAsync && level.trips &&
        level.cut.outer == LoopKind::kSerial) {
      elements = SaturatedProduct(elements, stage.depth);
      const int depth = rings_.emplace(level.axis, stage.depth).first->second;
      Expect(depth == stage.depth, "stage of @", stage.buffer, " along %", stage.axis, ": ",
             stage.depth, " slots beside a ring of ", depth, ", expected one depth in a loop");
    }
    UseShared(elements, size);
    int64_t registers = 1;
    for (const auto& digits : FillLayout(extents, 16 / size, schedule_.threads))
      registers = SaturatedProduct(registers, RegisterCount(digits));
    Expect(registers <= kMaxRegisters, "stage of @", stage.buffer, " along %", stage.axis, ": ",
           registers, " elements for each thread to copy, expected at most ", kMaxRegisters);
  }

  // ---- matrix instructions ----------------------------------------------------------------------
  const Level* MatrixLevel() const {
    for (const Level& level : levels_) {
      if (IsMatrix(level.cut.digits)) return &level;
    }
    return nullptr;
  }

  void Matrix(const Accumulate& update, const State& state, const Expr& sum) {
    const Level &k = *MatrixLevel(), *row = nullptr, *column = nullptr;
    const bool mma = schedule_.instruction == MatrixInstruction::kMma;
    bool fits = mma && k.cut.digits.back().extent == 16;
    for (const Level& level : levels_) {
      if (level.Local() == 1 || &level == &k) continue;
      const Level*& as = EndsWith(level.cut.digits, kRowEnd) ? row : column;
      fits = fits && as == nullptr;
      as = &level;
    }
    Expect(fits && row && column && EndsWith(column->cut.digits, kColumnEnd), "axis %", k.axis,
           ": matrix digits, expected mma of 16 and round the sum an axis whose digits end in "
           "register(2), thread(8, 4), one in thread(4, 1), register(2), and no others");
    for (size_t i = state.depth; i < levels_.size(); ++i) {
      const int64_t tile = TileOf(levels_[i].cut);
      Expect(levels_[i].role == AxisRole::kFree || tile == 1 ||
                 AsInt(levels_[i].extent).value_or(1) % tile == 0,
             "axis %", levels_[i].axis, ": tiles of ", tile, " over ", Print(levels_[i].extent),
             ", expected whole ones where matrix instructions sum");
    }
    if (!error_.empty()) return;
    const auto plain = [](const Expr& e) { return As<Cast>(e) ? As<Cast>(e)->a : e; };
    // An operand: `e` is in shared memory, in rows that ldmatrix takes.
    const auto expect_staged = [&](const Expr& e, const Level& own, const Level& other) {
      bool rows = As<Load>(e) && Uses(e, own.axis) && !Uses(e, other.axis);
      bool staged = false;
      for (const StageSchedule& stage : schedule_.stages) {
        const Tile tile = rows && stage.buffer == As<Load>(e)->buffer ? Staged(stage, e) : Tile();
        if (tile.empty()) continue;
        const auto& [axis, extent] = tile.back();
        staged = true;
        rows = (axis == own.axis || axis == k.axis) && (extent + stage.padding) % 8 == 0;
      }
      Expect(rows && staged && SizeOf(e->dtype) == 2, "operand ", Print(e),
             " of a matrix instruction, expected a 16-bit load over %", k.axis, " and %", own.axis,
             ", staged in rows of a multiple of 16 bytes");
    };
    if (state.monoid == Monoid::kSoftmaxSum) {  // weights are the other operand
      return expect_staged(plain(sum), *column, *row);
    }
    const auto* product = As<Binary>(sum);
    fits = product && product->op == BinaryOp::kMul && !update.guard;
    Expect(fits && plain(product->a)->dtype == plain(product->b)->dtype, "axis %", k.axis,
           ": matrix digits, expected a sum of products of one dtype without a guard");
    if (!error_.empty()) return;
    const Expr a = plain(product->a), b = plain(product->b);
    const bool in_order = Uses(a, row->axis);
    expect_staged(in_order ? a : b, *row, *column);
    expect_staged(in_order ? b : a, *column, *row);
  }

  const Function& fn_;
  const Schedule& schedule_;
  const Target& target_;
  RangeMap ranges_;
  NameSet taken_;
  std::vector<Level> levels_;
  std::map<std::string, State> states_;
  std::map<std::string, Expr> lets_;
  std::set<std::string> names_, written_, filled_;
  std::vector<std::string> guards_of_values_;  // names that the end of their axis varies with
  Expr score_;                                 // of the softmax sum in whose loop this is
  bool in_values_ = false;                     // of that
  size_t streamed_ = 0;                        // loops round what is declared inside of that
  std::map<std::string, int> rings_;
  int64_t grid_[3] = {1, 1, 1};
  int64_t shared_bytes_ = 0;
  std::string error_;
};

}  // namespace

absl::Status CheckSchedule(const LoopFn& loop, const Schedule& schedule, const Target& target) {
  return Checker(loop, schedule, target).Run();
}

}  // namespace hackc::schedule
