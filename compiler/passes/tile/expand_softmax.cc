// SPDX-License-Identifier: MIT
#include "compiler/passes/tile/expand_softmax.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "compiler/ir/bounds_proof.h"
#include "compiler/ir/digits.h"
#include "compiler/ir/linear.h"
#include "compiler/ir/ranges.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/simplify.h"
#include "compiler/passes/find_update.h"
#include "compiler/support/internal_error.h"

namespace hackc::passes {
namespace {

using namespace ir;  // NOLINT: a pass is about IR from end to end

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Expr LocalScalar(const std::string& name) { return MakeLoad(name, DType::kF32, {}); }

// Everything that one softmax reduction needs while it is rewritten.
struct State {
  std::string name;
  std::vector<Expr> extents;
  std::string sum, maximum, total;  // names of the streaming state
};

class Expander {
 public:
  explicit Expander(TileFn tile)
      : tile_(std::move(tile)), ranges_(tile_.fn.symbols), names_(TakenNames(tile_.fn)) {}

  TileFn Run() {
    tile_.fn.body = Visit(tile_.fn.body);
    return std::move(tile_);
  }

 private:
  Block Visit(const Block& block) {
    Block out;
    for (const Stmt& stmt : block) {
      if (const auto* acc = As<Accumulator>(stmt); acc && acc->monoid == Monoid::kSoftmaxSum) {
        State state{acc->name, acc->extents, names_.Unique(acc->name + "_sum"),
                    names_.Unique(acc->name + "_max"), names_.Unique(acc->name + "_total")};
        out.push_back(MakeStmt(Accumulator{state.sum, Monoid::kSum, acc->extents, {}}));
        out.push_back(MakeStmt(Alloc{state.maximum}));
        out.push_back(MakeStmt(Store{state.maximum, {}, FloatLit(-kInfinity), nullptr}));
        out.push_back(MakeStmt(Alloc{state.total}));
        out.push_back(MakeStmt(Store{state.total, {}, FloatLit(0), nullptr}));
        states_[acc->name] = state;
      } else if (acc && acc->monoid == Monoid::kLogSumExp) {
        log_sums_[acc->name];  // read from the state whose scores it shares
      } else if (const auto* loop = As<For>(stmt)) {
        const FoundUpdate found = FindSoftmax(loop->body);
        if (found.update && loop->role != AxisRole::kFree) {
          Stream(*loop, found, states_.at(found.update->name), out);
        } else {
          For copy = *loop;
          copy.extent = ReadResults(copy.extent);
          ranges_.SetAxis(copy.axis, copy.extent);
          copy.body = Visit(copy.body);
          out.push_back(MakeStmt(std::move(copy)));
        }
      } else {
        for (Stmt& mapped : MapExprs({stmt}, [&](const Expr& e) { return ReadResults(e); })) {
          out.push_back(std::move(mapped));
        }
      }
    }
    return out;
  }

  FoundUpdate FindSoftmax(const Block& block) const {
    return FindUpdate(block, [&](const std::string& name) { return states_.count(name) > 0; });
  }

  // Reads of a finished state: accumulator / total, 0 where nothing was seen; or maximum +
  // log(total).
  Expr ReadResults(const Expr& e) const {
    return Rewrite(e, [&](const Expr& node) -> Expr {
      if (const auto* var = As<Var>(node); var && log_sums_.count(var->name)) {
        const State& of = log_sums_.at(var->name);
        HACKC_CHECK(!of.name.empty()) << var->name << ": no softmax_sum of the same scores";
        Expr total = LocalScalar(of.total);
        return MakeSelect(Lt(FloatLit(0), total),
                          LocalScalar(of.maximum) + MakeUnary(UnaryOp::kLog, total),
                          FloatLit(-kInfinity));
      }
      const State* state = nullptr;
      Expr sum;
      if (const auto* load = As<Load>(node); load && states_.count(load->buffer)) {
        state = &states_.at(load->buffer);
        sum = MakeLoad(state->sum, DType::kF32, load->indices, load->guard);
      } else if (const auto* var = As<Var>(node); var && states_.count(var->name)) {
        state = &states_.at(var->name);
        sum = MakeVar(state->sum, DType::kF32);
      }
      if (state == nullptr) return nullptr;
      Expr total = LocalScalar(state->total);
      return MakeSelect(Lt(FloatLit(0), total), MakeBinary(BinaryOp::kDiv, sum, total),
                        FloatLit(0));
    });
  }

  // The largest value of `end` over the axes round it, or null where that is not known: start + s +
  // 1 with s in seq becomes start + seq. What a load says of its own axes stays: @past_lengths[%b]
  // is as it is.
  Expr LargestEnd(const Expr& end) const {
    Expr largest = end;
    std::set<std::string> kept;
    for (const Load* load : OuterLoads(end)) {
      for (const Expr& index : load->indices) kept.merge(Names(index));
    }
    for (const std::string& name : FreeVars(end)) {
      if (kept.count(name)) continue;
      Expr extent = ranges_.FindExtent(name);
      if (extent == nullptr) return nullptr;
      largest = Substitute(largest, name, extent - 1);
    }
    largest = Simplify(largest, ranges_);
    return Names(largest) == kept && ProveLessEqual(end, largest, ranges_) ? largest : nullptr;
  }
  static std::set<std::string> Names(const Expr& e) {
    const std::vector<std::string> names = FreeVars(e);
    return {names.begin(), names.end()};
  }

  // Guards loads along `axis` of buffers that go on beyond `end`: a cache holds anything there, and
  // a weight of 0 times NaN is NaN. All rows share one bound, which a matrix instruction needs.
  Expr GuardValues(const Expr& value, const std::string& axis, const Expr& end) const {
    Expr bound = LargestEnd(end);
    if (!bound) {  // over the rows of one block: a part of the keys ends where the part does
      bound = end;
      for (const std::string& name : FreeVars(end)) {
        const AxisSchedule* of = tile_.schedule.Find(name);
        if (!of || of->digits.empty()) continue;
        const Expr extent = ranges_.FindExtent(name);
        const bool grows = extent && FreeVars(extent).empty() && Grows(bound, name);
        HACKC_CHECK(grows || tile_.schedule.instruction != MatrixInstruction::kMma)
            << "no bound of " << axis << " that all rows share";
        if (!grows) continue;
        bound = Substitute(bound, name, extent - 1);
      }
      bound = Simplify(bound, ranges_);
    }
    return Rewrite(value, [&](const Load& load) -> Expr {
      const bool varies =
          absl::c_any_of(load.indices, [&](const Expr& index) { return Uses(index, axis); });
      if (!IsFloat(load.dtype) || !varies) return nullptr;
      for (const BufferDecl& buffer : tile_.fn.buffers) {
        if (buffer.name != load.buffer) continue;
        for (size_t i = 0; i < load.indices.size(); ++i) {
          const auto* var = As<Var>(load.indices[i]);
          bool along = var != nullptr && var->name == axis;
          if (along && ProveLessEqual(buffer.shape[i], bound, ranges_)) return nullptr;
        }
        return MakeLoad(load.buffer, load.dtype, load.indices,
                        And(load.guard, Lt(Axis(axis), bound)));
      }
      return nullptr;
    });
  }

  // The first chunk of keys `j` that any row of a block sees, null for the first of all: `seen`, a
  // conjunction, has comparisons that keep out what is before a key that grows from row to row.
  // Blocks of rows begin at multiples of their tile.
  Expr FirstChunk(const Expr& seen, const std::string& j, int64_t chunk) const {
    Expr first = IntLit(0);
    for (const Expr& condition : Flatten(seen, BinaryOp::kAnd)) {
      const auto* order = As<Binary>(condition);
      if (!order || order->a->dtype != DType::kI32) continue;
      const bool less = order->op == BinaryOp::kLt;
      if (!less && order->op != BinaryOp::kLe) continue;
      // a <= b is j >= a - b + j, where that holds no j.
      Expr key = Simplify(order->a - order->b + Axis(j) + (less ? 1 : 0), ranges_);
      bool known = !Uses(key, j) && IsExact(key, ranges_);
      for (const std::string& name : FreeVars(key)) {
        const AxisSchedule* cut = tile_.schedule.Find(name);
        const int64_t tile = cut ? TileOf(*cut) : 1;
        known = known && ranges_.FindExtent(name) && (tile == 1 || Grows(key, name));
        if (tile > 1) key = Substitute(key, name, FloorDiv(Axis(name), tile) * tile);
      }
      if (known) first = Max(first, key);
    }
    first = Simplify(FloorDiv(first, chunk), ranges_);
    return AsInt(first) == 0 ? nullptr : first;
  }

  // Rewrites the reduce loop `loop` that updates `state` where it was `found`.
  void Stream(const For& loop, const FoundUpdate& found, const State& state, Block& out) {
    const std::string& j = loop.axis;
    const AxisSchedule* axis = tile_.schedule.Find(j);
    HACKC_CHECK(axis != nullptr) << "softmax axis " << j << " has no schedule";
    const AxisSchedule of_scores = *axis;
    const int64_t chunk = TileOf(of_scores);
    const std::string chunk_axis = names_.Unique(j + "_chunk"),
                      score_axis = names_.Unique(j + "_score"),
                      weight_axis = names_.Unique(j + "_weight"),
                      value_axis = names_.Unique(j + "_value");

    // Split the body: what makes the score, and the update with the loops round it.
    Block score_body;
    std::map<std::string, Expr> lets;
    const std::vector<const For*>& value_loops = found.loops;
    const Accumulate* update = found.update;
    Expr log_score;
    for (const Stmt& stmt : loop.body) {
      const auto* direct = As<Accumulate>(stmt);
      const bool holds_update = FindSoftmax({stmt}).update != nullptr;
      if (const auto* let = As<Let>(stmt)) lets[let->name] = let->value;
      if (holds_update) WalkStmts({stmt}, [&](const Let& let) { lets[let.name] = let.value; });
      if (direct && log_sums_.count(direct->name)) {
        log_sums_[direct->name] = state;
        log_score = direct->operands.at(0);
      } else if (!holds_update) {
        score_body.push_back(stmt);
      }
    }
    size_t updates = 0;
    WalkStmts(loop.body, [&](const Accumulate& n) { updates += states_.count(n.name); });
    HACKC_CHECK(updates == 1 && update->operands.size() == 2) << "two updates of " << state.name;
    HACKC_CHECK(!log_score || Equal(log_score, update->operands[0]))
        << state.name << ": log_sum_exp of other scores";

    auto inline_lets = [&](const Expr& e) {
      Expr current = e;
      for (size_t i = 0; i <= lets.size(); ++i) current = Substitute(current, lets);
      return current;
    };
    const Expr guard = inline_lets(update->guard);
    Expr seen = guard;
    const Expr score = inline_lets(update->operands[0]);
    for (const auto* mask = As<Select>(score); mask && Equal(mask->b, FloatLit(-kInfinity));
         mask = As<Select>(mask->a)) {
      seen = And(seen, mask->condition);
    }
    Expr end = ReadResults(loop.extent);
    Expr here = Axis(chunk_axis), chunks = CeilDiv(end, chunk);
    if (const Expr first = FirstChunk(seen, j, chunk)) {
      const Expr walked = MakeVar(names_.Unique(j + "_first"), DType::kI32);
      out.push_back(MakeStmt(Let{As<Var>(walked)->name, first}));
      here = walked + here;
      chunks = chunks - walked;
    }
    auto at = [&](const std::string& local) { return here * chunk + Axis(local); };
    auto bind = [&](const Expr& e, const std::string& local) {
      return Substitute(e, j, at(local));
    };

    Block body;
    const auto made = [&](const char* what) { return names_.Unique(state.name + what); };
    const std::string scores = made("_score"), weights = made("_weight");
    const std::string chunk_max = made("_chunk_max"), chunk_sum = made("_chunk_sum");
    body.push_back(MakeStmt(Alloc{scores, DType::kF32, MemorySpace::kLocal, {chunk}}));
    body.push_back(MakeStmt(Accumulator{chunk_max, Monoid::kMax, {}, {}}));
    Block score_loop = SubstituteVars(score_body, j, at(score_axis));
    for (const For* value_loop : value_loops) {
      HACKC_CHECK(!Uses(guard, value_loop->axis))
          << state.name << ": a guard that differs between the columns of one weight";
    }
    const Expr inside = And(Lt(at(score_axis), end), bind(guard, score_axis));
    Expr masked = MakeSelect(inside, bind(update->operands[0], score_axis), FloatLit(-kInfinity));
    Expr masked_var = MakeVar(names_.Unique(scores + "_masked"), DType::kF32);
    score_loop.push_back(MakeStmt(Let{As<Var>(masked_var)->name, masked}));
    score_loop.push_back(MakeStmt(Store{scores, {Axis(score_axis)}, masked_var, nullptr}));
    score_loop.push_back(MakeStmt(Accumulate{chunk_max, {}, {masked_var}, nullptr}));
    body.push_back(MakeStmt(
        For{score_axis, AxisRole::kReduce, LoopKind::kSequential, IntLit(chunk), {}, score_loop}));

    auto let = [&](const char* what, Expr value) {
      const std::string name = made(what);
      body.push_back(MakeStmt(Let{name, std::move(value)}));
      return MakeVar(name, DType::kF32);
    };
    Expr peak = let("_peak", Max(LocalScalar(state.maximum), MakeVar(chunk_max, DType::kF32)));
    // A row whose scores are all -inf so far must not make exp(-inf - -inf).
    Expr reference =
        let("_reference",
            MakeSelect(MakeBinary(BinaryOp::kEq, peak, FloatLit(-kInfinity)), FloatLit(0), peak));
    Expr rescale =
        let("_rescale", MakeUnary(UnaryOp::kExp, LocalScalar(state.maximum) - reference));

    // A matrix instruction takes the weights in the values' dtype; that rounding is stated here.
    DType weight_dtype = DType::kF32;
    if (tile_.schedule.instruction == MatrixInstruction::kMma) {
      Expr inlined = inline_lets(update->operands[1]);
      for (const Load* load : OuterLoads(inlined)) weight_dtype = load->dtype;
    }
    body.push_back(MakeStmt(Alloc{weights, weight_dtype, MemorySpace::kLocal, {chunk}}));
    body.push_back(MakeStmt(Accumulator{chunk_sum, Monoid::kSum, {}, {}}));
    Expr weight =
        MakeUnary(UnaryOp::kExp, MakeLoad(scores, DType::kF32, {Axis(weight_axis)}) - reference);
    const Expr rounded = MakeVar(names_.Unique(weights + "_value"), DType::kF32);
    Block weight_loop = {
        MakeStmt(Let{As<Var>(rounded)->name, weight}),
        MakeStmt(Store{weights, {Axis(weight_axis)}, MakeCast(weight_dtype, rounded)}),
        MakeStmt(Accumulate{chunk_sum, {}, {rounded}, nullptr})};
    body.push_back(MakeStmt(For{
        weight_axis, AxisRole::kReduce, LoopKind::kSequential, IntLit(chunk), {}, weight_loop}));
    body.push_back(MakeStmt(Store{state.maximum, {}, peak, nullptr}));
    Expr total = LocalScalar(state.total) * rescale + MakeVar(chunk_sum, DType::kF32);
    body.push_back(MakeStmt(Store{state.total, {}, total}));

    // Rescale, then add the chunk's weighted values.
    auto in_value_loops = [&](Block inner, const std::string& suffix) {
      for (size_t i = value_loops.size(); i-- > 0;) {
        For copy = *value_loops[i];
        if (!suffix.empty()) {
          const std::string axis = names_.Unique(copy.axis + suffix);
          inner = SubstituteVars(inner, copy.axis, Axis(axis));
          if (const AxisSchedule* known = tile_.schedule.Find(copy.axis)) {
            tile_.schedule.axes.push_back({axis, known->outer, known->steps, known->digits});
          }
          copy.axis = axis;
        }
        copy.body = std::move(inner);
        inner = {MakeStmt(std::move(copy))};
      }
      return inner;
    };
    Expr old_sum = state.extents.empty() ? MakeVar(state.sum, DType::kF32)
                                         : MakeLoad(state.sum, DType::kF32, update->indices);
    for (const Stmt& stmt :
         in_value_loops({MakeStmt(Store{state.sum, update->indices, old_sum * rescale, nullptr})},
                        "_rescale")) {
      body.push_back(stmt);
    }
    Expr value = bind(GuardValues(inline_lets(update->operands[1]), j, end), value_axis);
    // Weights beyond the end of a row are exactly 0, and values beyond every row's end read as 0.
    Expr weighted =
        MakeCast(DType::kF32, MakeLoad(weights, weight_dtype, {Axis(value_axis)})) * value;
    Block value_body =
        in_value_loops({MakeStmt(Accumulate{state.sum, update->indices, {weighted}, nullptr})}, "");
    body.push_back(MakeStmt(For{
        value_axis, AxisRole::kContract, LoopKind::kSequential, IntLit(chunk), {}, value_body}));

    // Role free: a chunk beyond a row's end changes nothing of its state, so it needs no mask.
    out.push_back(
        MakeStmt(For{.axis = chunk_axis, .extent = std::move(chunks), .body = std::move(body)}));

    // The schedule speaks of the new axes from here on.
    for (const std::string& name : {score_axis, weight_axis})
      tile_.schedule.axes.push_back({name, LoopKind::kSerial, of_scores.steps, of_scores.digits});
    if (!tile_.schedule.Find(value_axis)) {
      tile_.schedule.axes.push_back({value_axis, LoopKind::kSerial, static_cast<int>(chunk), {}});
    }
    std::erase_if(tile_.schedule.axes, [&](const AxisSchedule& a) { return a.axis == j; });
    for (StageSchedule& stage : tile_.schedule.stages) {
      if (stage.axis == j) stage.axis = chunk_axis;
    }
  }

  TileFn tile_;
  RangeMap ranges_;
  NameSet names_;
  std::map<std::string, State> states_;
  // log_sum_exp states, and the softmax sums that they are read from.
  std::map<std::string, State> log_sums_;
};

}  // namespace

absl::StatusOr<TileFn> ExpandSoftmax(const TileFn& tile) { return Expander(tile).Run(); }

}  // namespace hackc::passes
