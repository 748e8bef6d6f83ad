// SPDX-License-Identifier: MIT
#include "compiler/passes/tile/split_axes.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "compiler/ir/digits.h"
#include "compiler/ir/ranges.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/simplify.h"
#include "compiler/passes/block_writer.h"
#include "compiler/passes/tile/axis_dependencies.h"
#include "compiler/support/cat.h"
#include "compiler/support/internal_error.h"

namespace hackc::passes {
namespace {

using namespace ir;  // NOLINT: a pass is about IR from end to end

// What an axis of the input became.
struct AxisInfo {
  std::string name;  // also the name of its local loop variable, until names are made unique
  AxisRole role = AxisRole::kFree;
  std::vector<Digit> digits;
  int64_t local = 1;  // product of the digits
  int64_t tile = 1;   // steps * local
  Expr outer;         // index of the tile
  Expr base;          // coordinate of the tile's first element
  Expr in_tile;       // coordinate inside the tile
  Expr global;        // base + in_tile
  Expr valid;         // absent when always inside the extent
};

// A value with one dimension for each local axis it depends on, then its own dimensions.
struct TileValue {
  std::vector<std::string> axes;
  DType dtype = DType::kF32;
  bool shared = false;
};

// A reduction in progress: how many loops stand round its declaration, and the bits of the thread
// index that its sums so far are partial over.
struct State {
  Monoid monoid = Monoid::kSum;
  size_t depth = 0;
  int partial_over = 0;
};

// A staged load: the shared tile and what indexes it, "m" for all of axis m or "tile:m" for one
// tile of it.
struct Staged {
  Expr load;  // as in the input
  std::string shared;
  std::vector<std::string> indices;
  Expr slot;  // of a ring; absent for a single tile
};

using Known = std::unordered_map<Expr, Expr, ExprHash, ExprEqual>;  // a load, what holds it
using Layout = std::vector<std::vector<Digit>>;

class Splitter : private BlockWriter {
 public:
  explicit Splitter(const TileFn& tile)
      : in_(tile), ranges_(tile.fn.symbols), dependencies_(tile.fn), names_(TakenNames(tile.fn)) {
    for (const BufferDecl& buffer : tile.fn.buffers) buffers_[buffer.name] = &buffer;
  }

  TileFn Run() {
    TileFn result = in_;
    result.fn.body = Process(in_.fn.body);
    return result;
  }

 private:
  // ---- the walk ---------------------------------------------------------------------------------
  Block Process(const Block& block) {
    return Inside([&] {
      for (const Stmt& stmt : block) {
        std::visit([&](const auto& node) { Split(node); }, stmt->node);
      }
    });
  }

  // What `visit` puts out. Loads are shared within one block only.
  Block Inside(auto&& visit) {
    const Known loaded = std::exchange(loaded_, {}), uniform = uniform_;
    const size_t staged = staged_.size();
    Block out = BlockWriter::Inside(visit);
    staged_.resize(staged);
    loaded_ = loaded;
    uniform_ = uniform;
    return out;
  }

  void Split(const auto&) { HACKC_FAIL() << "statement kind does not belong before split_axes"; }

  void Split(const Let& let) { Define(let.name, Hoist(Resolve(let.value))); }

  void Split(const For& loop) {
    const AxisSchedule& schedule = ScheduleOf(loop.axis);
    AxisInfo info{loop.axis, loop.role, schedule.digits, CoordinateCount(schedule.digits),
                  TileOf(schedule)};

    Expr extent = Hoist(Resolve(loop.extent));
    HACKC_CHECK(Loads(extent).empty())
        << "the end of " << loop.axis << ", " << Print(extent) << ", differs between threads";
    // All threads make the same number of trips: the largest that any local coordinate asks for.
    Expr trips_of = Substitute(extent, [&](const std::string& name) -> Expr {
      const AxisInfo* local = FindOrNull(axes_, name);
      if (!local || local->local == 1) return nullptr;
      HACKC_CHECK(Grows(extent, name)) << loop.axis << " ends sooner where " << name << " rises";
      return IntLit(local->local - 1);
    });
    Expr outer_extent = Simplify(CeilDiv(trips_of, info.tile), ranges_);
    std::string outer_name = names_.Unique(loop.axis + (info.tile > 1 ? "_tile" : "_index"));
    bool has_outer = AsInt(outer_extent) != 1;
    Expr outer = has_outer ? Axis(outer_name) : IntLit(0);
    if (has_outer) ranges_.SetAxis(outer_name, outer_extent);
    std::string step_name = names_.Unique(loop.axis + "_step");
    bool has_steps = schedule.steps > 1;
    if (has_steps) ranges_.SetAxis(step_name, IntLit(schedule.steps));
    if (info.local > 1) ranges_.SetAxis(info.name, IntLit(info.local));

    info.outer = outer;
    info.base = outer * info.tile;
    info.in_tile = (has_steps ? Axis(step_name) * info.local : IntLit(0)) +
                   (info.local > 1 ? Axis(info.name) : IntLit(0));
    info.global = info.base + info.in_tile;
    if (!ProveLess(info.global, extent, ranges_)) info.valid = Lt(info.global, extent);

    context_.push_back(info);
    axes_[loop.axis] = info;
    for (const StageSchedule& stage : in_.schedule.stages) {
      if (stage.axis == loop.axis) pending_stages_.push_back(&stage);
    }
    Block body = Inside([&] {
      // Inside the grid there is nothing but the next grid loop: fill where the last one opened.
      if (!HoldsGridLoop(loop)) {
        for (const StageSchedule* stage : pending_stages_) Stage(*stage, loop);
        pending_stages_.clear();
      }
      Block inner = Process(loop.body);
      const For steps{step_name, loop.role, LoopKind::kSerial, IntLit(schedule.steps)};
      EmitAll(has_steps ? InLoops({steps}, std::move(inner)) : inner);
    });
    context_.pop_back();
    const For tiles{outer_name, loop.role, schedule.outer, outer_extent};
    EmitAll(has_outer ? InLoops({tiles}, std::move(body)) : body);
    // Totals over threads, once the outermost loop that a state is summed in has ended.
    for (auto& [name, state] : states_) {
      if (state.depth != context_.size() || state.partial_over == 0) continue;
      Emit(Combine{name, state.monoid, state.partial_over});
      state.partial_over = 0;
    }
  }

  const AxisSchedule& ScheduleOf(const std::string& axis) const {
    static const AxisSchedule kPlain;
    const AxisSchedule* given = in_.schedule.Find(axis);
    return given ? *given : kPlain;
  }

  bool HoldsGridLoop(const For& loop) const {
    const For* inner = loop.body.size() == 1 ? As<For>(loop.body.front()) : nullptr;
    return inner && ScheduleOf(inner->axis).outer != LoopKind::kSerial;
  }

  // ---- declarations -----------------------------------------------------------------------------
  // `value.axes`, then what the value has of its own; the layout only with an `own` one.
  Alloc Spread(const std::string& name, const TileValue& value, const std::vector<int64_t>& extents,
               const std::optional<Layout>& own) const {
    Alloc tile{name, value.dtype, MemorySpace::kLocal, {}, {}};
    for (const std::string& axis : value.axes) {
      tile.extents.push_back(axes_.at(axis).local);
      if (own) tile.layout.push_back(axes_.at(axis).digits);
    }
    absl::c_copy(extents, std::back_inserter(tile.extents));
    if (own) absl::c_copy(*own, std::back_inserter(tile.layout));
    return tile;
  }

  void Split(const Accumulator& acc) {
    std::vector<int64_t> extents;
    for (const Expr& extent : acc.extents) extents.push_back(*AsInt(extent));
    const auto own = OwnLayout(acc.name, extents);
    HACKC_CHECK(own.has_value()) << "state " << acc.name
                                 << " is indexed by axes of different layouts";
    const TileValue value{LocalAxes(dependencies_.Of(acc.name)), DType::kF32, false};
    const Alloc tile = Spread(acc.name, value, extents, own);
    Accumulator copy{acc.name, acc.monoid, {}, tile.layout};
    for (int64_t extent : tile.extents) copy.extents.push_back(IntLit(extent));
    values_[acc.name] = value;
    states_[acc.name] = {acc.monoid, context_.size(), 0};
    Emit(std::move(copy));
  }

  void Split(const Alloc& alloc) {
    const auto own = OwnLayout(alloc.name, alloc.extents);
    const TileValue value{LocalAxes(dependencies_.Of(alloc.name)), alloc.dtype, !own};
    Alloc tile = Spread(alloc.name, value, alloc.extents, own);
    if (!own) {  // Written under one layout and read under another: goes through shared memory.
      tile.space = MemorySpace::kShared;
      tile.padding = 16 / SizeOf(alloc.dtype);  // rows start in different banks, at 16 bytes
    }
    values_[alloc.name] = value;
    Emit(std::move(tile));
  }

  // Digits of each own dimension when every access in the input agrees on them.
  std::optional<Layout> OwnLayout(const std::string& name,
                                  const std::vector<int64_t>& extents) const {
    if (extents.empty()) return Layout();
    std::optional<Layout> layout;
    bool agree = true;
    const auto see = [&](const std::string& target, const std::vector<Expr>& indices) {
      if (target != name) return;
      HACKC_CHECK(indices.size() == extents.size()) << name;
      Layout digits;
      for (const Expr& index : indices) {
        const auto* var = As<Var>(index);
        const AxisSchedule* axis = var ? in_.schedule.Find(var->name) : nullptr;
        if (axis && IsMatrix(axis->digits) && axis->digits.size() == 1) {
          // As the first operand of a matrix instruction the tile is read in the layout of its
          // result.
          digits.push_back(FragmentColumns(axis->steps));
        } else if (AsInt(index) && extents[digits.size()] == 1) {
          digits.emplace_back();
        } else if (!axis || axis->steps != 1 || IsMatrix(axis->digits)) {
          agree = false;
          return;
        } else {
          digits.push_back(axis->digits);
        }
      }
      if (layout && *layout != digits) agree = false;
      layout = digits;
    };
    WalkExprs(in_.fn.body, [&](const Load& load) { see(load.buffer, load.indices); });
    WalkStmts(
        in_.fn.body, [&](const Store& store) { see(store.buffer, store.indices); },
        [&](const Accumulate& update) { see(update.name, update.indices); });
    return agree ? layout : std::nullopt;
  }

  // ---- expressions ------------------------------------------------------------------------------
  // Names of the input become coordinates, tiles and staged tiles.
  Expr Resolve(const Expr& e) {
    Expr staged = Rewrite(e, [&](const Expr& node) -> Expr {
      if (As<Load>(node) == nullptr) return nullptr;
      for (const Staged& stage : staged_) {
        if (!Equal(node, stage.load)) continue;
        std::vector<Expr> indices;
        if (stage.slot) indices.push_back(stage.slot);
        for (const std::string& index : stage.indices)
          indices.push_back(MakeVar(index, DType::kI32));
        return MakeLoad(stage.shared, node->dtype, std::move(indices));
      }
      return nullptr;
    });
    return Rewrite(staged, [&](const Expr& node) -> Expr {
      if (const auto* var = As<Var>(node)) {
        if (var->name.rfind("tile:", 0) == 0) return axes_.at(var->name.substr(5)).in_tile;
        if (const AxisInfo* axis = FindOrNull(axes_, var->name)) return axis->global;
        return values_.count(var->name) ? Read(var->name, {}) : nullptr;
      }
      if (const auto* load = As<Load>(node); load && values_.count(load->buffer)) {
        return Read(load->buffer, load->indices, load->guard);
      }
      return nullptr;
    });
  }

  Expr Read(const std::string& name, const std::vector<Expr>& own, Expr guard = nullptr) const {
    const TileValue& value = values_.at(name);
    std::vector<Expr> indices;
    for (const std::string& axis : value.axes) indices.push_back(Axis(axis));
    indices.insert(indices.end(), own.begin(), own.end());
    return MakeLoad(name, value.dtype, std::move(indices), std::move(guard));
  }

  // Local axes that a resolved expression varies with, outermost first.
  std::vector<std::string> LocalAxes(const std::vector<Expr>& exprs) const {
    std::set<std::string> used;
    for (const Expr& e : exprs) {
      for (const std::string& name : FreeVars(e)) used.insert(name);
    }
    return LocalAxes(used);
  }
  std::vector<std::string> LocalAxes(const std::set<std::string>& used) const {
    std::vector<std::string> axes;
    for (const AxisInfo& info : context_) {
      if (info.local > 1 && used.count(info.name)) axes.push_back(info.name);
    }
    return axes;
  }

  // The load, held back where it would be out of bounds.
  Expr Guarded(Load load) const {
    const BufferDecl* buffer = FindOr(buffers_, load.buffer);
    for (size_t i = 0; i < load.indices.size(); ++i) {
      Expr& index = load.indices[i];
      index = Simplify(index, ranges_);
      if (!buffer) continue;
      if (!ProveNonNegative(index, ranges_)) load.guard = And(load.guard, Le(IntLit(0), index));
      if (!ProveLess(index, buffer->shape[i], ranges_))
        load.guard = And(load.guard, Lt(index, buffer->shape[i]));
    }
    return MakeLoad(load.buffer, load.dtype, load.indices, load.guard);
  }

  // Loads from memory get nests of their own; what is left reads registers only.
  Expr Hoist(const Expr& e) {
    return Rewrite(e, [&](const Load& load) -> Expr {
      if (!buffers_.count(load.buffer) && !FindOr(values_, load.buffer).shared) return nullptr;
      Expr guarded = Guarded(load);
      std::vector<std::string> axes = LocalAxes({guarded});
      if (axes.empty()) return Uniform(guarded);
      // Operands of a matrix instruction are read from where they lie.
      for (const std::string& axis : axes) {
        if (IsMatrix(axes_.at(axis).digits)) return guarded;
      }
      if (const Expr* local = FindOrNull(loaded_, guarded)) return *local;
      Expr local = ToLocal(Fresh(load.buffer + "_in"), guarded, axes);
      return loaded_[guarded] = local;
    });
  }

  // An integer that all threads load alike, such as a sequence's length, is a let.
  Expr Uniform(const Expr& load) {
    const Load& node = *As<Load>(load);
    const BufferDecl* buffer = FindOr(buffers_, node.buffer);
    if (!IsInteger(load->dtype) || !buffer || buffer->access != Access::kRead) return load;
    if (const Expr* let = FindOrNull(uniform_, load)) return *let;
    return uniform_[load] = EmitLet(Fresh(node.buffer + "_in"), load);
  }

  // alloc name[axes] = value, in its own nest; returns the read of it.
  Expr ToLocal(const std::string& name, const Expr& value, const std::vector<std::string>& axes) {
    Emit(Spread(name, {axes, value->dtype}, {}, Layout()));
    std::vector<Expr> indices;
    for (const std::string& axis : axes) indices.push_back(Axis(axis));
    Nest(axes, {MakeStmt(Store{name, indices, value, nullptr})});
    return MakeLoad(name, value->dtype, indices);
  }

  // Nests reuse the axes' names; every loop gets its own.
  void Nest(const std::vector<std::string>& axes, Block body) {
    std::vector<For> loops;
    for (const std::string& axis : axes) {
      const AxisInfo& info = axes_.at(axis);
      const int uses = ++loop_uses_[axis];
      const std::string name = uses == 1 ? axis : names_.Unique(Cat(axis, "_", uses));
      if (uses > 1) body = SubstituteVars(body, axis, Axis(name));
      loops.push_back({name, info.role, LoopKind::kLocal, IntLit(info.local), info.digits});
    }
    EmitIn(loops, std::move(body));
  }

  // ---- statements -------------------------------------------------------------------------------
  void Define(const std::string& name, const Expr& resolved) {
    Expr value = Simplify(resolved, ranges_);
    std::vector<std::string> axes = LocalAxes({value});
    if (axes.empty()) {
      Emit(Let{name, value});
      if (!IsFloat(value->dtype)) ranges_.SetVar(name, Bounds(value, ranges_));
      uniform_lets_.insert(name);
      return;
    }
    values_[name] = TileValue{axes, value->dtype, false};
    ToLocal(name, value, axes);
  }

  void Split(const Accumulate& update) {
    const std::vector<Expr> operands = ReadyAll(update.operands);
    Expr read = Read(update.name, ReadyAll(update.indices));
    std::vector<Expr> indices = As<Load>(read)->indices;
    std::vector<std::string> kept = LocalAxes(indices);
    // Every axis entered since the state was declared and not kept is summed over, used or not.
    std::vector<std::string> axes;
    Expr guard = Ready(update.guard);
    const std::vector<std::string>& scope = dependencies_.ScopeOf(update.name);
    for (const AxisInfo& info : context_) {
      if (absl::c_linear_search(scope, info.name)) continue;
      bool is_kept = absl::c_linear_search(kept, info.name);
      if (!is_kept) states_.at(update.name).partial_over |= ThreadMask(info.digits);
      if (info.local > 1 && !is_kept) axes.push_back(info.name);
      if (info.role != AxisRole::kFree) guard = And(guard, info.valid);
      HACKC_CHECK(!IsMatrix(info.digits) || info.valid == nullptr)
          << info.name << ": a matrix instruction needs a whole number of tiles";
    }
    std::vector<Expr> all = indices;
    all.insert(all.end(), operands.begin(), operands.end());
    all.push_back(guard);
    for (const std::string& axis : LocalAxes(all)) {
      if (!absl::c_linear_search(axes, axis)) axes.push_back(axis);
    }
    Nest(axes, {MakeStmt(Accumulate{update.name, indices, operands, guard})});
  }

  Expr Ready(const Expr& e) { return Simplify(Hoist(Resolve(e)), ranges_); }
  std::vector<Expr> ReadyAll(std::vector<Expr> exprs) {
    for (Expr& e : exprs) e = Ready(e);
    return exprs;
  }

  void Split(const Store& store) {
    Expr value = Ready(store.value);
    std::vector<Expr> indices = ReadyAll(store.indices);
    Expr guard = Ready(store.guard);
    bool global = buffers_.count(store.buffer) != 0;
    if (!global) {
      std::erase_if(loaded_, [&](const auto& entry) {
        return As<Load>(entry.first)->buffer == store.buffer;
      });
      indices = As<Load>(Read(store.buffer, indices))->indices;
    } else {
      for (const AxisInfo& info : context_) guard = And(guard, info.valid);
    }
    std::vector<Expr> all = indices;
    all.push_back(value);
    all.push_back(guard);
    bool memory = global || values_.at(store.buffer).shared;
    std::vector<std::string> axes = LocalAxes(all);
    if (memory && !axes.empty() && As<Load>(value) == nullptr) {
      std::vector<std::string> value_axes = LocalAxes({value});
      if (!value_axes.empty()) value = ToLocal(Fresh(store.buffer + "_out"), value, value_axes);
    }
    Nest(axes, {MakeStmt(Store{store.buffer, indices, value, guard, store.engine, store.cache})});
  }

  // ---- staging ----------------------------------------------------------------------------------
  void Stage(const StageSchedule& stage, const For& loop) {
    std::map<std::string, const For*> inner;
    WalkStmts(loop.body, [&](const For& below) { inner[below.axis] = &below; });
    WalkExprs(loop.body, [&](const Expr& e) {
      Walk(e, [&](const Expr& node) {
        const auto* load = As<Load>(node);
        const auto same = [&](const Staged& other) { return Equal(other.load, node); };
        if (load && load->buffer == stage.buffer && Uses(node, stage.axis) &&
            absl::c_none_of(staged_, same)) {
          StageLoad(stage, loop, node, inner);
        }
      });
    });
  }

  void StageLoad(const StageSchedule& stage, const For& loop, const Expr& node,
                 const std::map<std::string, const For*>& inner) {
    const Load& load = *As<Load>(node);
    std::vector<std::string> axes;  // input axes that index the tile, in order of appearance
    std::map<std::string, Expr> coordinates;
    std::vector<int64_t> extents;
    for (const Expr& index : load.indices) {
      for (const std::string& name : FreeVars(index)) {
        if (absl::c_linear_search(axes, name) || uniform_lets_.count(name)) continue;
        int64_t extent = 1;
        const AxisInfo* known = FindOrNull(axes_, name);
        if (const For* below = FindOr(inner, name)) {
          auto static_extent = AsInt(below->extent);
          if (!static_extent) return;
          const int64_t tile = TileOf(ScheduleOf(name));  // what overhangs is read, though not used
          extent = (*static_extent + tile - 1) / tile * tile;
        } else if (known) {
          extent = known->tile;
        } else {
          return;  // depends on a value made inside the loop
        }
        if (extent == 1 && inner.count(name)) coordinates[name] = IntLit(0);
        if (extent > 1) {
          axes.push_back(name);
          extents.push_back(extent);
        }
      }
    }
    if (axes.empty()) return;
    // What only a guard depends on must be one value for the whole tile.
    for (const std::string& name : FreeVars(load.guard)) {
      if (uniform_lets_.count(name)) continue;
      const AxisInfo* known = FindOrNull(axes_, name);
      if (!absl::c_linear_search(axes, name) && (inner.count(name) || !known || known->tile > 1))
        return;
    }
    std::string name = Fresh(load.buffer + "_tile");
    const auto layout = FillLayout(extents, 16 / SizeOf(load.dtype), in_.schedule.threads);
    std::vector<AxisInfo> fill(axes.size());
    for (size_t i = axes.size(); i-- > 0;) {
      fill[i].name = Fresh(axes[i] + "_fill");
      fill[i].local = extents[i];
      fill[i].digits = layout[i];
    }
    std::vector<std::string> fill_axes;
    std::vector<Expr> tile_indices;
    size_t depth = context_.size();
    for (size_t i = 0; i < axes.size(); ++i) {
      ranges_.SetAxis(fill[i].name, IntLit(fill[i].local));
      Expr base = inner.count(axes[i]) ? IntLit(0) : axes_.at(axes[i]).base;
      coordinates[axes[i]] = base + Axis(fill[i].name);
      axes_[fill[i].name] = fill[i];
      context_.push_back(fill[i]);
      fill_axes.push_back(fill[i].name);
      tile_indices.push_back(Axis(fill[i].name));
    }
    Expr source = Substitute(node, [&](const std::string& var) {
      return FindOr(coordinates, var, FindOr(axes_, var).global);
    });
    Alloc tile{name, load.dtype, MemorySpace::kShared, extents, {}, stage.padding, 16};
    // A ring is filled ahead by copies that bypass registers; they can only read what nobody
    // writes.
    CopyEngine engine = stage.engine;
    if (buffers_.at(load.buffer)->access != Access::kRead) engine = CopyEngine::kRegisters;
    const Expr& turn = axes_.at(loop.axis).outer;
    Expr slot;
    if (stage.depth > 1 && engine == CopyEngine::kCpAsync && !AsInt(turn) &&
        ScheduleOf(loop.axis).outer == LoopKind::kSerial) {
      slot = Mod(turn, stage.depth);
      tile.slots = stage.depth;
      tile.extents.insert(tile.extents.begin(), stage.depth);
      tile_indices.insert(tile_indices.begin(), slot);
    } else {
      engine = CopyEngine::kRegisters;
    }
    Emit(std::move(tile));
    const CacheHint cache = engine == CopyEngine::kCpAsync ? stage.cache : CacheHint::kNormal;
    if (engine == CopyEngine::kRegisters) {
      source = Hoist(source);
    } else {
      source = Rewrite(source, [&](const Load& inside) {
        const Expr guarded = Guarded(inside);
        return FindOr(uniform_, guarded, guarded);
      });
    }
    Nest(fill_axes, {MakeStmt(Store{name, tile_indices, source, nullptr, engine, cache})});
    context_.resize(depth);
    values_[name] = {{}, load.dtype, true};
    for (std::string& axis : axes) axis = inner.count(axis) ? axis : "tile:" + axis;
    staged_.push_back({node, name, axes, slot});
  }

  // ---- names ------------------------------------------------------------------------------------
  std::string Fresh(const std::string& stem) { return names_.Unique(Cat(stem, "_", counter_++)); }

  const TileFn& in_;
  RangeMap ranges_;
  AxisDependencies dependencies_;
  std::map<std::string, const BufferDecl*> buffers_;
  std::vector<AxisInfo> context_;
  std::map<std::string, AxisInfo> axes_;
  std::map<std::string, TileValue> values_;
  std::map<std::string, State> states_;
  std::set<std::string> uniform_lets_;
  std::vector<Staged> staged_;
  std::vector<const StageSchedule*> pending_stages_;
  Known loaded_, uniform_;
  NameSet names_;
  std::map<std::string, int> loop_uses_;
  int counter_ = 0;
};

}  // namespace

absl::StatusOr<TileFn> SplitAxes(const TileFn& tile) {
  std::string split;  // what only this pass makes
  WalkStmts(
      tile.fn.body,
      [&](const For& loop) {
        if (loop.kind != LoopKind::kSequential) split = Cat("%", loop.axis, " ", Name(loop.kind));
      },
      [&](const Combine& combine) { split = Cat("combine of ", combine.name); });
  if (split.empty()) return Splitter(tile).Run();
  return absl::InvalidArgumentError(
      Cat("expected Tile IR of whole axes, got some that are split already: ", split));
}

}  // namespace hackc::passes
