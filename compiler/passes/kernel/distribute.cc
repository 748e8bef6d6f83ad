// SPDX-License-Identifier: MIT
#include "compiler/passes/kernel/distribute.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "compiler/ir/digits.h"
#include "compiler/ir/ranges.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/simplify.h"
#include "compiler/passes/block_writer.h"
#include "compiler/support/cat.h"
#include "compiler/support/internal_error.h"

namespace hackc::passes {
namespace {

using namespace ir;  // NOLINT: a pass is about IR from end to end

using Layout = std::vector<std::vector<Digit>>;

int RegisterCount(const Layout& layout) {
  int64_t count = 1;
  for (const auto& digits : layout) count = SaturatedProduct(count, ir::RegisterCount(digits));
  return static_cast<int>(std::min<int64_t>(count, INT32_MAX));
}

Expr CombineTwo(Monoid monoid, const Expr& a, const Expr& b) {
  switch (monoid) {
    case Monoid::kSum: return a + b;
    case Monoid::kMax: return MakeBinary(BinaryOp::kMax, a, b);
    case Monoid::kMin: return MakeBinary(BinaryOp::kMin, a, b);
    case Monoid::kProduct: return a * b;
    case Monoid::kSoftmaxSum:
    case Monoid::kLogSumExp: break;
  }
  HACKC_FAIL() << Name(monoid) << " must be expanded before distribution";
  return nullptr;
}

template <typename T>
const T* Alone(const Block& block) {
  return block.size() == 1 ? As<T>(block.front()) : nullptr;
}

class Distributor : private BlockWriter {
 public:
  explicit Distributor(const TileFn& tile)
      : tile_(tile), ranges_(tile.fn.symbols), names_(TakenNames(tile.fn)) {
    thread_ = MakeBuiltin(BuiltinKind::kThread);
    ranges_.SetBuiltin(BuiltinKind::kThread, {0, tile.schedule.threads - 1});
  }

  KernelFn Run() {
    const Schedule& s = tile_.schedule;
    KernelFn kernel{tile_.fn, {}, s.threads, s.cluster, s.min_blocks_per_sm, {}};
    const Block* body = &tile_.fn.body;
    std::vector<const For*> grid;
    while (const For* loop = Alone<For>(*body)) {
      if (!IsGrid(loop->kind)) break;
      grid.push_back(loop);
      body = &loop->body;
    }
    kernel.grid = BindGrid(grid);
    kernel.fn.body = MapExprs(Inside([&] { Visit(*body); }),
                              [&](const Expr& e) { return Simplify(e, ranges_); });
    return kernel;
  }

 private:
  struct Local {
    Layout layout;
    bool shared = false;
    Monoid monoid = Monoid::kSum;  // of a state
  };

  // Several loops may share a grid dimension; the innermost varies fastest.
  std::vector<Expr> BindGrid(const std::vector<const For*>& loops) {
    static constexpr LoopKind kKinds[] = {LoopKind::kGridX, LoopKind::kGridY, LoopKind::kGridZ};
    std::vector<Expr> grid;
    for (int dim = 0; dim < 3; ++dim) {
      Expr size = IntLit(1);
      Expr index = MakeBuiltin(BlockIndex(dim));
      int left = 0;
      for (const For* loop : loops) left += loop->kind == kKinds[dim];
      for (size_t i = loops.size(); i-- > 0;) {
        if (loops[i]->kind != kKinds[dim]) continue;
        --left;
        coordinates_[loops[i]->axis] = left == 0 ? index : Mod(index, loops[i]->extent);
        index = FloorDiv(index, loops[i]->extent);
        size = size * loops[i]->extent;
      }
      grid.push_back(Simplify(size, ranges_));
      Range bounds = Bounds(size, ranges_);
      ranges_.SetBuiltin(BlockIndex(dim), {0, bounds.max >= kNoLimit ? kNoLimit : bounds.max - 1});
    }
    return grid;
  }

  void Visit(const Block& block) {
    for (const Stmt& stmt : block) {
      std::visit([&](const auto& node) { Lower(node); }, stmt->node);
    }
  }

  void Lower(const auto&) { HACKC_FAIL() << "statement kind does not belong to Tile IR"; }

  void Lower(const Let& let) { Emit(Let{let.name, Map(let.value)}); }

  void Lower(const For& loop) {
    if (loop.kind == LoopKind::kSerial) {
      For copy = loop;
      copy.extent = Map(loop.extent);
      ranges_.SetAxis(loop.axis, Simplify(copy.extent, ranges_));
      // Fragments in registers are chosen by the step: it must be a constant.
      const For* nest = loop.body.empty() ? nullptr : As<For>(loop.body.front());
      if (nest && IsMatrix(nest->digits)) copy.kind = LoopKind::kUnroll;
      copy.body = Inside([&] { Visit(loop.body); });
      Emit(std::move(copy));
      return;
    }
    HACKC_CHECK(loop.kind == LoopKind::kLocal) << "loop " << loop.axis << " of unexpected kind";
    if (IsMatrix(loop.digits)) return LowerMatrix(loop);
    const Digits all = DigitsOf(loop, "r", 0);
    coordinates_[loop.axis] = all.coordinate;
    nest_[loop.axis] = {loop.digits, all.registers};
    int outer_mask = nest_mask_;
    nest_mask_ |= ThreadMask(loop.digits);
    EmitIn(all.loops, Inside([&] { Visit(loop.body); }));
    nest_mask_ = outer_mask;
  }

  // Digits of an axis, as this thread's coordinate over them. Register digits become unrolled
  // `loops`; `index` counts the `count` registers.
  struct Digits {
    std::vector<For> loops;
    std::vector<Expr> registers;  // value of each register digit
    Expr coordinate = IntLit(0), index = IntLit(0);
    int count = 1;
  };

  // Mixed radix over all digits but the `last` ones. With `pairs`, the last register digit counts
  // pairs.
  Digits DigitsOf(const For& loop, const std::string& tag, size_t last, bool pairs = false) {
    Digits out;
    for (size_t i = 0; i + last < loop.digits.size(); ++i) {
      const Digit& digit = loop.digits[i];
      Expr value = Mod(FloorDiv(thread_, digit.stride), digit.extent);
      if (digit.kind != Digit::Kind::kThread) {
        HACKC_CHECK(digit.kind == Digit::Kind::kRegister)
            << loop.axis << ": matrix digit outside a contraction";
        const int step = pairs && i + last + 1 == loop.digits.size() ? 2 : 1;
        const int trips = digit.extent / step;
        const std::string name = names_.Unique(Cat(loop.axis, "_", tag, out.loops.size()));
        value = trips == 1 ? IntLit(0) : Axis(name) * step;
        if (trips > 1) {
          out.loops.push_back({name, loop.role, LoopKind::kUnroll, IntLit(trips)});
          ranges_.SetAxis(name, IntLit(trips));
        }
        out.registers.push_back(value);
        out.index = out.index * digit.extent + value;
        out.count *= digit.extent;
      }
      out.coordinate = out.coordinate * digit.extent + value;
    }
    return out;
  }

  void Lower(const Alloc& alloc) {
    locals_[alloc.name] = {alloc.layout, alloc.space == MemorySpace::kShared};
    Alloc copy = alloc;
    if (alloc.space == MemorySpace::kLocal) copy.extents = {RegisterCount(alloc.layout)};
    copy.layout.clear();
    Emit(std::move(copy));
  }

  void Lower(const Accumulator& acc) {
    locals_[acc.name] = {acc.layout, false, acc.monoid};
    int count = RegisterCount(acc.layout);
    Emit(Alloc{acc.name, DType::kF32, MemorySpace::kLocal, {count}, {}});
    SetRegisters(acc.name, count, [&](const Expr&) { return FloatLit(Identity(acc.monoid)[0]); });
  }

  void Lower(const Accumulate& update) {
    const Local& state = locals_.at(update.name);
    Expr index = RegisterIndex(state.layout, update.indices, update.name);
    Expr old = MakeLoad(update.name, DType::kF32, {index});
    Expr total = CombineTwo(state.monoid, old, Map(update.operands.at(0)));
    if (update.guard) total = MakeSelect(Map(update.guard), total, old);
    Emit(Store{update.name, {index}, total, nullptr});
  }

  void Lower(const Store& store) {
    Store copy = store;
    copy.engine = CopyEngine::kRegisters;  // vectorize makes copies of stores into rings
    copy.value = Map(store.value);
    copy.guard = Map(store.guard);
    const Local* local = FindOrNull(locals_, store.buffer);
    if (local && !local->shared) {
      copy.indices = {RegisterIndex(local->layout, store.indices, store.buffer)};
    } else {
      for (Expr& index : copy.indices) index = Map(index);
      int idle = (tile_.schedule.threads - 1) & ~nest_mask_;
      if (idle != 0) {
        Expr bits = idle == tile_.schedule.threads - 1
                        ? thread_
                        : MakeBinary(BinaryOp::kBitAnd, thread_, IntLit(idle));
        copy.guard = And(copy.guard, MakeBinary(BinaryOp::kEq, bits, IntLit(0)));
      }
    }
    Emit(std::move(copy));
  }

  void Lower(const Combine& combine) {
    const std::string& name = combine.name;
    int count = RegisterCount(locals_.at(name).layout);
    auto element = [&](const Expr& r) { return MakeLoad(name, DType::kF32, {r}); };
    for (int bit = 1; bit < 32; bit *= 2) {
      if ((combine.thread_mask & bit) == 0) continue;
      SetRegisters(name, count, [&](const Expr& r) {
        Expr other = MakeShuffle(ShuffleKind::kXor, element(r), IntLit(bit));
        return CombineTwo(combine.monoid, element(r), other);
      });
    }
    int warps = combine.thread_mask & ~31;
    if (warps == 0) return;
    // Between warps: every thread publishes its part, then reads the parts of the threads that
    // differ from it in the summed bits only. Threads that agree on all bits below 32 read the same
    // order: same total.
    std::string exchange = names_.Unique(Cat(name, "_exchange_", counter_++));
    int threads = tile_.schedule.threads;
    Emit(Alloc{exchange, DType::kF32, MemorySpace::kShared, {count, threads}, {}, 0, 16});
    EachRegister(name, count, [&](const Expr& r) {
      Emit(Store{exchange, {r, thread_}, element(r), nullptr});
    });
    int keep = (threads - 1) & ~warps;
    Expr base = MakeBinary(BinaryOp::kBitAnd, thread_, IntLit(keep));
    SetRegisters(name, count, [&](const Expr& r) {
      Expr total = MakeLoad(exchange, DType::kF32, {r, base});
      for (int subset = 0; subset != warps;) {
        subset = (subset - warps) & warps;  // all subsets of the summed bits, ascending
        const Expr part = MakeLoad(exchange, DType::kF32, {r, base + subset});
        total = CombineTwo(combine.monoid, total, part);
      }
      return total;
    });
  }

  // ---- matrix instructions ----------------------------------------------------------------------
  // for k: matrix { for m { for n { acc[m, n] <- f32(a[m, k]) * f32(b[n, k]) } } } on m16n8k16.
  void LowerMatrix(const For& k) {
    const For* first = Alone<For>(k.body);
    const For* second = first ? Alone<For>(first->body) : nullptr;
    const auto* update = second ? Alone<Accumulate>(second->body) : nullptr;
    HACKC_CHECK(update != nullptr && k.digits.back().extent == 16)
        << k.axis << ": not the nest of one contraction";
    HACKC_CHECK((ThreadMask(k.digits) & 31) == 0)
        << k.axis << ": lanes of a warp share an instruction";
    const Expr part = DigitsOf(k, "w", 1).coordinate * 16;  // of the coordinates of k, this warp's
    const For& m = EndsWith(first->digits, kRowEnd) ? *first : *second;
    const For& n = &m == first ? *second : *first;
    HACKC_CHECK(EndsWith(m.digits, kRowEnd) && EndsWith(n.digits, kColumnEnd))
        << k.axis << ": axes without fragment layout";
    const auto* product = As<Binary>(update->operands.at(0));
    HACKC_CHECK(product && product->op == BinaryOp::kMul && !update->guard) << update->name;
    const Load* a = Operand(product->a);
    const Load* b = Operand(product->b);
    if (!Varies(*a, m.axis)) std::swap(a, b);
    HACKC_CHECK(Varies(*a, m.axis) && Varies(*b, n.axis) && a->dtype == b->dtype) << update->name;

    // a: in registers already when it is a local tile, else one ldmatrix of four 8 x 8 for each
    // fragment.
    const Digits rows = DigitsOf(m, "f", 2);  // fragments of 16
    std::string a_array = a->buffer;
    Expr a_index;
    const Local& a_local = locals_.at(a->buffer);
    Expr lane = Mod(thread_, 32);
    if (!a_local.shared) {
      HACKC_CHECK(k.digits.size() == 1) << k.axis << ": warps share an operand in registers";
      Expr step = FloorDiv(BindAll({a->indices.back()}, {{k.axis, IntLit(0)}})[0], 8);
      const int64_t columns = ir::RegisterCount(a_local.layout.back()) / 2;  // eights in the tile
      a_index = (rows.index * columns + step) * 4;
    } else {
      a_array = names_.Unique(Cat(a->buffer, "_a_", counter_++));
      Emit(Alloc{a_array, a->dtype, MemorySpace::kLocal, {rows.count * 8}, {}});
      const Expr top = rows.coordinate * 16;
      Expr row = top + Mod(lane, 8) + Mod(FloorDiv(lane, 8), 2) * 8;
      Expr column = FloorDiv(lane, 16) * 8;
      bool transposed = !Varies(*a, k.axis, a->indices.size() - 1);
      if (transposed) {
        row = top + Mod(FloorDiv(lane, 8), 2) * 8;
        column = Mod(lane, 8) + FloorDiv(lane, 16) * 8;
      }
      EmitIn(rows.loops,
             {MakeStmt(LoadMatrix{a_array, rows.index * 8, a->buffer,
                                  BindAll(a->indices, {{m.axis, row}, {k.axis, part + column}}), 4,
                                  transposed})});
      a_index = rows.index * 8;
    }

    // b: two fragments of eight columns at a time where their number is even.
    bool pairs = n.digits.size() > 2 &&
                 n.digits[n.digits.size() - 3].kind == Digit::Kind::kRegister &&
                 n.digits[n.digits.size() - 3].extent % 2 == 0;
    const Digits load = DigitsOf(n, "l", 2, pairs);
    std::string b_array = names_.Unique(Cat(b->buffer, "_b_", counter_++));
    Emit(Alloc{b_array, b->dtype, MemorySpace::kLocal, {load.count * 4}, {}});
    bool transposed = !Varies(*b, k.axis, b->indices.size() - 1);
    Expr half = pairs ? FloorDiv(lane, 16) * 8 : IntLit(0);
    Expr column = load.coordinate * 8 + half + (transposed ? IntLit(0) : Mod(lane, 8));
    Expr depth = Mod(FloorDiv(lane, 8), 2) * 8 + (transposed ? Mod(lane, 8) : IntLit(0));
    EmitIn(load.loops,
           {MakeStmt(LoadMatrix{b_array, load.index * 4, b->buffer,
                                BindAll(b->indices, {{n.axis, column}, {k.axis, part + depth}}),
                                pairs ? 4 : 2, transposed})});

    const Digits columns = DigitsOf(n, "f", 2);
    std::vector<For> loops = rows.loops;
    loops.insert(loops.end(), columns.loops.begin(), columns.loops.end());
    const Expr index = (rows.index * columns.count + columns.index) * 4;
    // The unrolled loops of `rows` appear twice: give the second nest its own names.
    Block body = {MakeStmt(Mma{MmaShape::kM16N8K16, a->dtype, update->name, index, a_array, a_index,
                               b_array, columns.index * 4})};
    for (For& loop : loops) {
      const std::string fresh = names_.Unique(Cat(loop.axis, "_m", counter_++));
      ranges_.SetAxis(fresh, loop.extent);
      body = SubstituteVars(body, loop.axis, Axis(fresh));
      loop.axis = fresh;
    }
    EmitIn(loops, std::move(body));
  }

  const Load* Operand(const Expr& e) const {
    const auto* cast = As<Cast>(e);
    const Load* load = As<Load>(cast ? cast->a : e);
    HACKC_CHECK(load && locals_.count(load->buffer))
        << Print(e) << ": operand of a matrix instruction must be staged";
    return load;
  }

  static bool Varies(const Load& load, const std::string& axis, size_t from = 0) {
    return std::any_of(load.indices.begin() + from, load.indices.end(),
                       [&](const Expr& index) { return Uses(index, axis); });
  }

  std::vector<Expr> BindAll(std::vector<Expr> exprs,
                            const std::map<std::string, Expr>& values) const {
    for (Expr& e : exprs) e = Map(Substitute(e, values));
    return exprs;
  }

  // Runs `emit` for each register of an array: directly for one, in an unrolled loop for more.
  void EachRegister(const std::string& name, int count, auto emit) {
    if (count == 1) return emit(IntLit(0));
    std::string axis = names_.Unique(Cat(name, "_i", counter_++));
    ranges_.SetAxis(axis, IntLit(count));
    EmitIn({{axis, AxisRole::kFree, LoopKind::kUnroll, IntLit(count)}},
           Inside([&] { emit(Axis(axis)); }));
  }

  void SetRegisters(const std::string& name, int count, auto value) {
    EachRegister(name, count, [&](const Expr& r) { Emit(Store{name, {r}, value(r), nullptr}); });
  }

  // Position in the register array: mixed radix over the register digits, first all but the last of
  // each dimension, then the last ones. So the 2 x 2 elements of a matrix fragment are consecutive,
  // its rows before its columns wherever they stand, and so are the elements of a vector. The
  // indices must be axes of the nest with the array's own layout; otherwise the tile would live in
  // other threads.
  Expr RegisterIndex(const Layout& layout, const std::vector<Expr>& indices,
                     const std::string& name) const {
    HACKC_CHECK(layout.size() == indices.size())
        << name << ": " << indices.size() << " indices, rank " << layout.size();
    std::vector<std::pair<int, Expr>> outer, inner;
    std::vector<size_t> dimensions(layout.size());
    std::iota(dimensions.begin(), dimensions.end(), 0);
    std::stable_partition(dimensions.begin(), dimensions.end(),
                          [&](size_t d) { return EndsWith(layout[d], kRowEnd); });
    for (size_t d : dimensions) {
      if (CoordinateCount(layout[d]) == 1) continue;  // whatever axis stands there, it is 0
      const auto* var = As<Var>(indices[d]);
      auto it = var ? nest_.find(var->name) : nest_.end();
      HACKC_CHECK(it != nest_.end() && it->second.digits == layout[d])
          << name << ": dimension " << d << " is read at " << Print(indices[d])
          << ", which has another layout";
      std::vector<std::pair<int, Expr>> digits;
      for (const Digit& digit : layout[d]) {
        if (digit.kind == Digit::Kind::kRegister)
          digits.emplace_back(digit.extent, it->second.registers[digits.size()]);
      }
      if (digits.empty()) continue;
      outer.insert(outer.end(), digits.begin(), digits.end() - 1);
      inner.push_back(digits.back());
    }
    outer.insert(outer.end(), inner.begin(), inner.end());
    Expr index = IntLit(0);
    for (const auto& [extent, value] : outer) index = index * extent + value;
    return index;
  }

  Expr Map(const Expr& e) const {
    // Register tiles first: their indices must still be axes.
    Expr tiles = Rewrite(e, [&](const Load& load) -> Expr {
      const Local* local = FindOrNull(locals_, load.buffer);
      if (!local || local->shared) return nullptr;
      return MakeLoad(load.buffer, load.dtype,
                      {RegisterIndex(local->layout, load.indices, load.buffer)}, load.guard);
    });
    return Substitute(tiles, coordinates_);
  }

  struct NestAxis {
    std::vector<Digit> digits;
    std::vector<Expr> registers;  // value of each register digit
  };

  const TileFn& tile_;
  RangeMap ranges_;
  NameSet names_;
  Expr thread_;
  std::map<std::string, Expr> coordinates_;
  std::map<std::string, NestAxis> nest_;
  std::map<std::string, Local> locals_;
  int nest_mask_ = 0;
  int counter_ = 0;
};

}  // namespace

absl::StatusOr<KernelFn> Distribute(const TileFn& tile) { return Distributor(tile).Run(); }

}  // namespace hackc::passes
