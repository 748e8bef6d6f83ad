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
#include "compiler/passes/block_writer.h"
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
  std::string sum, maximum, total;  // names of the streaming state
};

class Expander : private BlockWriter {
 public:
  explicit Expander(TileFn tile)
      : tile_(std::move(tile)), ranges_(tile_.fn.symbols), names_(TakenNames(tile_.fn)) {}

  TileFn Run() {
    tile_.fn.body = Visit(tile_.fn.body);
    return std::move(tile_);
  }

 private:
  Block Visit(const Block& block) {
    return Inside([&] {
      for (const Stmt& stmt : block) Visit(stmt);
    });
  }

  void Visit(const Stmt& stmt) {
    if (const auto* acc = As<Accumulator>(stmt); acc && acc->monoid == Monoid::kSoftmaxSum) {
      const State state{acc->name, names_.Unique(acc->name + "_sum"),
                        names_.Unique(acc->name + "_max"), names_.Unique(acc->name + "_total")};
      Emit(Accumulator{state.sum, Monoid::kSum, acc->extents, {}});
      Emit(Alloc{state.maximum});
      Emit(Store{state.maximum, {}, FloatLit(-kInfinity), nullptr});
      Emit(Alloc{state.total});
      Emit(Store{state.total, {}, FloatLit(0), nullptr});
      states_[acc->name] = state;
    } else if (acc && acc->monoid == Monoid::kLogSumExp) {
      log_sums_[acc->name];  // read from the state whose scores it shares
    } else if (const auto* loop = As<For>(stmt)) {
      const FoundUpdate found = FindSoftmax(loop->body);
      if (found.update && loop->role != AxisRole::kFree) {
        return Stream(*loop, found, states_.at(found.update->name));
      }
      For copy = *loop;
      copy.extent = ReadResults(copy.extent);
      ranges_.SetAxis(copy.axis, copy.extent);
      copy.body = Visit(copy.body);
      Emit(std::move(copy));
    } else {
      EmitAll(MapExprs({stmt}, [&](const Expr& e) { return ReadResults(e); }));
    }
  }

  FoundUpdate FindSoftmax(const Block& block) const {
    return FindUpdate(block, [&](const std::string& name) { return states_.count(name) > 0; });
  }

  // Reads of a finished state: accumulator / total, 0 where nothing was seen; or maximum +
  // log(total).
  Expr ReadResults(const Expr& e) const {
    return Rewrite(e, [&](const Expr& node) -> Expr {
      const auto* var = As<Var>(node);
      if (const State* of = var ? FindOrNull(log_sums_, var->name) : nullptr) {
        HACKC_CHECK(!of->name.empty()) << var->name << ": no softmax_sum of the same scores";
        Expr total = LocalScalar(of->total);
        return MakeSelect(Lt(FloatLit(0), total),
                          LocalScalar(of->maximum) + MakeUnary(UnaryOp::kLog, total),
                          FloatLit(-kInfinity));
      }
      const auto* load = As<Load>(node);
      const State* state = load  ? FindOrNull(states_, load->buffer)
                           : var ? FindOrNull(states_, var->name)
                                 : nullptr;
      if (state == nullptr) return nullptr;
      const Expr sum = load ? MakeLoad(state->sum, DType::kF32, load->indices, load->guard)
                            : MakeVar(state->sum, DType::kF32);
      Expr total = LocalScalar(state->total);
      return MakeSelect(Lt(FloatLit(0), total), MakeBinary(BinaryOp::kDiv, sum, total),
                        FloatLit(0));
    });
  }

  // The largest value of `end` over the axes round it, or null where that is not known: start + s +
  // 1 with s in seq becomes start + seq. What a load says of its own axes stays: @past_lengths[%b]
  // is as it is.
  Expr LargestEnd(const Expr& end) const {
    std::set<std::string> kept;
    for (const Load* load : OuterLoads(end)) {
      for (const Expr& index : load->indices) {
        for (const std::string& name : FreeVars(index)) kept.insert(name);
      }
    }
    const Expr last = Substitute(end, [&](const std::string& name) -> Expr {
      const Expr extent = kept.count(name) ? nullptr : ranges_.FindExtent(name);
      return extent ? extent - 1 : nullptr;
    });
    const Expr largest = Simplify(last, ranges_);
    const auto is_kept = [&](const std::string& name) { return kept.count(name) > 0; };
    const bool known = absl::c_all_of(FreeVars(largest), is_kept);
    return known && ProveLessEqual(end, largest, ranges_) ? largest : nullptr;
  }

  // Guards loads along `axis` of buffers that go on beyond `end`: a cache holds anything there, and
  // a weight of 0 times NaN is NaN. All rows share one bound, which a matrix instruction needs.
  Expr GuardValues(const Expr& value, const std::string& axis, const Expr& end) const {
    Expr bound = LargestEnd(end);
    if (!bound) {  // over the rows of one block: a part of the keys ends where the part does
      const Expr last = Substitute(end, [&](const std::string& name) -> Expr {
        const AxisSchedule* of = tile_.schedule.Find(name);
        if (!of || of->digits.empty()) return nullptr;
        const Expr extent = ranges_.FindExtent(name);
        const bool grows = extent && FreeVars(extent).empty() && Grows(end, name);
        HACKC_CHECK(grows || tile_.schedule.instruction != MatrixInstruction::kMma)
            << "no bound of " << axis << " that all rows share";
        return grows ? extent - 1 : nullptr;
      });
      bound = Simplify(last, ranges_);
    }
    return Rewrite(value, [&](const Load& load) -> Expr {
      const bool varies =
          absl::c_any_of(load.indices, [&](const Expr& index) { return Uses(index, axis); });
      if (!IsFloat(load.dtype) || !varies) return nullptr;
      const BufferDecl* buffer = FindBy(tile_.fn.buffers, &BufferDecl::name, load.buffer);
      if (!buffer) return nullptr;
      for (size_t i = 0; i < load.indices.size(); ++i) {
        const bool along = Equal(load.indices[i], Axis(axis));
        if (along && ProveLessEqual(buffer->shape[i], bound, ranges_)) return nullptr;
      }
      return MakeLoad(load.buffer, load.dtype, load.indices,
                      And(load.guard, Lt(Axis(axis), bound)));
    });
  }

  // The first chunk of keys `j` that any row of a block sees, null for the first of all: where
  // `seen` begins at a key that grows from row to row. Blocks of rows begin at multiples of their
  // tile.
  Expr FirstChunk(const Expr& seen, const std::string& j, int64_t chunk) const {
    Expr first = IntLit(0);
    for (Expr key : BeginsOf(seen, j, ranges_)) {
      bool known = true;
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
  void Stream(const For& loop, const FoundUpdate& found, const State& state) {
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
    const Accumulate* update = found.update;
    for (const Stmt& stmt : loop.body) {
      const auto* direct = As<Accumulate>(stmt);
      if (direct && log_sums_.count(direct->name)) {
        log_sums_[direct->name] = state;
        HACKC_CHECK(Equal(direct->operands.at(0), update->operands[0]))
            << state.name << ": log_sum_exp of other scores";
      } else if (!FindSoftmax({stmt}).update) {
        score_body.push_back(stmt);
      }
    }
    std::map<std::string, Expr> lets;
    size_t updates = 0;
    WalkStmts(
        loop.body, [&](const Let& let) { lets[let.name] = let.value; },
        [&](const Accumulate& n) { updates += states_.count(n.name); });
    HACKC_CHECK(updates == 1 && update->operands.size() == 2) << "two updates of " << state.name;

    auto inline_lets = [&](const Expr& e) {
      Expr current = e;
      for (size_t i = 0; i <= lets.size(); ++i) current = Substitute(current, lets);
      return current;
    };
    const Expr guard = inline_lets(update->guard);
    const Expr seen = And(guard, MaskOf(inline_lets(update->operands[0])));
    Expr end = ReadResults(loop.extent);
    Expr here = Axis(chunk_axis), chunks = CeilDiv(end, chunk);
    if (const Expr first = FirstChunk(seen, j, chunk)) {
      const Expr walked = EmitLet(names_.Unique(j + "_first"), first);
      here = walked + here;
      chunks = chunks - walked;
    }
    auto at = [&](const std::string& local) { return here * chunk + Axis(local); };
    auto bind = [&](const Expr& e, const std::string& local) {
      return Substitute(e, j, at(local));
    };

    const auto made = [&](const char* what) { return names_.Unique(state.name + what); };
    const std::string scores = made("_score"), weights = made("_weight");
    const std::string chunk_max = made("_chunk_max"), chunk_sum = made("_chunk_sum");
    const auto emit_loop = [&](const std::string& axis, AxisRole role, auto&& visit) {
      Emit(For{axis, role, LoopKind::kSequential, IntLit(chunk), {}, Inside(visit)});
    };
    const Block body = Inside([&] {
      Emit(Alloc{scores, DType::kF32, MemorySpace::kLocal, {chunk}});
      Emit(Accumulator{chunk_max, Monoid::kMax, {}, {}});
      for (const For& value_loop : found.loops) {
        HACKC_CHECK(!Uses(guard, value_loop.axis))
            << state.name << ": a guard that differs between the columns of one weight";
      }
      const Expr inside = And(Lt(at(score_axis), end), bind(guard, score_axis));
      const Expr masked =
          MakeSelect(inside, bind(update->operands[0], score_axis), FloatLit(-kInfinity));
      emit_loop(score_axis, AxisRole::kReduce, [&] {
        EmitAll(SubstituteVars(score_body, j, at(score_axis)));
        const Expr score = EmitLet(names_.Unique(scores + "_masked"), masked);
        Emit(Store{scores, {Axis(score_axis)}, score, nullptr});
        Emit(Accumulate{chunk_max, {}, {score}, nullptr});
      });

      const Expr maximum = LocalScalar(state.maximum);
      const Expr peak = EmitLet(made("_peak"), Max(maximum, MakeVar(chunk_max, DType::kF32)));
      // A row whose scores are all -inf so far must not make exp(-inf - -inf).
      const Expr reference = EmitLet(
          made("_reference"),
          MakeSelect(MakeBinary(BinaryOp::kEq, peak, FloatLit(-kInfinity)), FloatLit(0), peak));
      const Expr rescale = EmitLet(made("_rescale"), MakeUnary(UnaryOp::kExp, maximum - reference));

      // A matrix instruction takes the weights in the values' dtype; that rounding is stated here.
      const Expr values = inline_lets(update->operands[1]);
      DType weight_dtype = DType::kF32;
      if (tile_.schedule.instruction == MatrixInstruction::kMma) {
        for (const Load* load : OuterLoads(values)) weight_dtype = load->dtype;
      }
      Emit(Alloc{weights, weight_dtype, MemorySpace::kLocal, {chunk}});
      Emit(Accumulator{chunk_sum, Monoid::kSum, {}, {}});
      const Expr weight =
          MakeUnary(UnaryOp::kExp, MakeLoad(scores, DType::kF32, {Axis(weight_axis)}) - reference);
      emit_loop(weight_axis, AxisRole::kReduce, [&] {
        const Expr exact = EmitLet(names_.Unique(weights + "_value"), weight);
        Emit(Store{weights, {Axis(weight_axis)}, MakeCast(weight_dtype, exact)});
        Emit(Accumulate{chunk_sum, {}, {exact}, nullptr});
      });
      Emit(Store{state.maximum, {}, peak, nullptr});
      const Expr total = LocalScalar(state.total) * rescale + MakeVar(chunk_sum, DType::kF32);
      Emit(Store{state.total, {}, total});

      // Rescale, then add the chunk's weighted values.
      std::vector<For> columns = found.loops;
      std::map<std::string, Expr> renamed;
      for (For& column : columns) {
        const std::string axis = names_.Unique(column.axis + "_rescale");
        if (const AxisSchedule* known = tile_.schedule.Find(column.axis)) {
          tile_.schedule.axes.push_back({axis, known->outer, known->steps, known->digits});
        }
        renamed[column.axis] = Axis(axis);
        column.axis = axis;
      }
      const Expr old_sum = update->indices.empty()
                               ? MakeVar(state.sum, DType::kF32)
                               : MakeLoad(state.sum, DType::kF32, update->indices);
      const Stmt rescaled = MakeStmt(Store{state.sum, update->indices, old_sum * rescale, nullptr});
      EmitIn(columns, SubstituteVars({rescaled}, [&](const std::string& name) {
               return FindOr(renamed, name);
             }));
      // Weights beyond the end of a row are exactly 0, and values beyond every row's end read as 0.
      const Expr value = bind(GuardValues(values, j, end), value_axis);
      const Expr weighted =
          MakeCast(DType::kF32, MakeLoad(weights, weight_dtype, {Axis(value_axis)})) * value;
      const Stmt sum = MakeStmt(Accumulate{state.sum, update->indices, {weighted}, nullptr});
      emit_loop(value_axis, AxisRole::kContract, [&] { EmitIn(found.loops, {sum}); });
    });
    // Role free: a chunk beyond a row's end changes nothing of its state, so it needs no mask.
    Emit(For{.axis = chunk_axis, .extent = std::move(chunks), .body = body});

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
