// SPDX-License-Identifier: MIT
#include "compiler/passes/kernel/distribute.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "compiler/ir/ranges.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/simplify.h"
#include "compiler/support/internal_error.h"

namespace hackc::passes {
namespace {

using namespace ir;  // NOLINT: a pass is about IR from end to end

using Layout = std::vector<std::vector<Digit>>;

int RegisterCount(const Layout& layout) {
  int count = 1;
  for (const auto& digits : layout) {
    for (const Digit& digit : digits) count *= digit.kind == Digit::Kind::kRegister ? digit.extent : 1;
  }
  return count;
}

Expr CombineTwo(Monoid monoid, const Expr& a, const Expr& b) {
  switch (monoid) {
    case Monoid::kSum: return a + b;
    case Monoid::kMax: return MakeBinary(BinaryOp::kMax, a, b);
    case Monoid::kMin: return MakeBinary(BinaryOp::kMin, a, b);
    case Monoid::kProduct: return a * b;
    case Monoid::kSoftmaxSum: break;
  }
  HACKC_FAIL() << "softmax_sum must be expanded before distribution";
  return nullptr;
}

class Distributor {
 public:
  explicit Distributor(const TileFn& tile) : tile_(tile), ranges_(tile.fn.symbols) {
    thread_ = MakeBuiltin(BuiltinKind::kThread);
    ranges_.SetBuiltin(BuiltinKind::kThread, {0, tile.schedule.threads - 1});
  }

  KernelFn Run() {
    KernelFn kernel;
    kernel.fn = tile_.fn;
    kernel.threads = tile_.schedule.threads;
    kernel.cluster = tile_.schedule.cluster;
    kernel.min_blocks_per_sm = tile_.schedule.min_blocks_per_sm;
    const Block* body = &tile_.fn.body;
    std::vector<const For*> grid;
    while (body->size() == 1) {
      const For* loop = As<For>(body->front());
      if (loop == nullptr || !IsGrid(loop->kind)) break;
      grid.push_back(loop);
      body = &loop->body;
    }
    kernel.grid = BindGrid(grid);
    Visit(*body);
    kernel.fn.body = MapExprs(out_, [&](const Expr& e) { return Simplify(e, ranges_); });
    return kernel;
  }

 private:
  struct Local {
    Layout layout;
    bool shared = false;
    DType dtype = DType::kF32;
  };

  static bool IsGrid(LoopKind kind) {
    return kind == LoopKind::kGridX || kind == LoopKind::kGridY || kind == LoopKind::kGridZ;
  }

  // Several loops may share a grid dimension; the innermost varies fastest.
  std::vector<Expr> BindGrid(const std::vector<const For*>& loops) {
    static constexpr BuiltinKind kBlocks[] = {BuiltinKind::kBlockX, BuiltinKind::kBlockY, BuiltinKind::kBlockZ};
    static constexpr LoopKind kKinds[] = {LoopKind::kGridX, LoopKind::kGridY, LoopKind::kGridZ};
    std::vector<Expr> grid;
    for (int dim = 0; dim < 3; ++dim) {
      Expr size = IntLit(1);
      Expr index = MakeBuiltin(kBlocks[dim]);
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
      ranges_.SetBuiltin(kBlocks[dim], {0, bounds.max >= kNoLimit ? kNoLimit : bounds.max - 1});
    }
    return grid;
  }

  void Visit(const Block& block) {
    for (const Stmt& stmt : block) {
      std::visit([&](const auto& node) { Lower(node); }, stmt->node);
    }
  }

  template <typename T>
  void Lower(const T&) {
    HACKC_FAIL() << "statement kind does not belong to Tile IR";
  }

  void Lower(const Let& let) { Emit(Let{let.name, Map(let.value)}); }

  void Lower(const For& loop) {
    if (loop.kind == LoopKind::kSerial) {
      For copy = loop;
      copy.extent = Map(loop.extent);
      ranges_.SetAxis(loop.axis, Simplify(copy.extent, ranges_));
      copy.body = Inside([&] { Visit(loop.body); });
      Emit(std::move(copy));
      return;
    }
    HACKC_CHECK(loop.kind == LoopKind::kLocal) << "loop " << loop.axis << " of unexpected kind";
    // Mixed radix over the digits; register digits become unrolled loops round the nest.
    Expr coordinate = IntLit(0);
    std::vector<Expr> registers;
    std::vector<std::pair<std::string, int>> unrolled;
    int mask = 0;
    for (const Digit& digit : loop.digits) {
      Expr value;
      if (digit.kind == Digit::Kind::kThread) {
        value = Mod(FloorDiv(thread_, digit.stride), digit.extent);
        mask |= (digit.extent - 1) * digit.stride;
      } else {
        HACKC_CHECK(digit.kind == Digit::Kind::kRegister) << loop.axis << ": matrix digit outside a contraction";
        std::string name = absl::StrCat(loop.axis, "_r", unrolled.size());
        value = digit.extent == 1 ? IntLit(0) : Axis(name);
        registers.push_back(value);
        if (digit.extent > 1) {
          unrolled.push_back({name, digit.extent});
          ranges_.SetAxis(name, IntLit(digit.extent));
        }
      }
      coordinate = coordinate * digit.extent + value;
    }
    coordinates_[loop.axis] = coordinate;
    nest_[loop.axis] = {loop.digits, registers};
    int outer_mask = nest_mask_;
    nest_mask_ |= mask;
    Block body = Inside([&] { Visit(loop.body); });
    nest_mask_ = outer_mask;
    for (size_t i = unrolled.size(); i-- > 0;) {
      body = {MakeStmt(For{unrolled[i].first, loop.role, LoopKind::kUnroll, IntLit(unrolled[i].second), {}, body})};
    }
    out_.insert(out_.end(), body.begin(), body.end());
  }

  void Lower(const Alloc& alloc) {
    locals_[alloc.name] = {alloc.layout, alloc.space == MemorySpace::kShared, alloc.dtype};
    Alloc copy = alloc;
    if (alloc.space == MemorySpace::kLocal) copy.extents = {RegisterCount(alloc.layout)};
    copy.layout.clear();
    Emit(std::move(copy));
  }

  void Lower(const Accumulator& acc) {
    locals_[acc.name] = {acc.layout, false, DType::kF32};
    int count = RegisterCount(acc.layout);
    Emit(Alloc{acc.name, DType::kF32, MemorySpace::kLocal, {count}, {}});
    EachRegister(acc.name, count, [&](const Expr& r) {
      Emit(Store{acc.name, {r}, FloatLit(Identity(acc.monoid)[0]), nullptr});
    });
    monoids_[acc.name] = acc.monoid;
  }

  void Lower(const Accumulate& update) {
    Expr index = RegisterIndex(locals_.at(update.name).layout, update.indices, update.name);
    Expr old = MakeLoad(update.name, DType::kF32, {index});
    Expr total = CombineTwo(monoids_.at(update.name), old, Map(update.operands.at(0)));
    if (update.guard) total = MakeSelect(Map(update.guard), total, old);
    Emit(Store{update.name, {index}, total, nullptr});
  }

  void Lower(const Store& store) {
    Store copy = store;
    copy.value = Map(store.value);
    copy.guard = Map(store.guard);
    auto local = locals_.find(store.buffer);
    if (local != locals_.end() && !local->second.shared) {
      copy.indices = {RegisterIndex(local->second.layout, store.indices, store.buffer)};
    } else {
      for (Expr& index : copy.indices) index = Map(index);
      int idle = (tile_.schedule.threads - 1) & ~nest_mask_;
      if (idle != 0) {
        Expr bits = idle == tile_.schedule.threads - 1 ? thread_ : MakeBinary(BinaryOp::kBitAnd, thread_, IntLit(idle));
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
      EachRegister(name, count, [&](const Expr& r) {
        Expr other = MakeShuffle(ShuffleKind::kXor, element(r), IntLit(bit));
        Emit(Store{name, {r}, CombineTwo(combine.monoid, element(r), other), nullptr});
      });
    }
    int warps = combine.thread_mask & ~31;
    if (warps == 0) return;
    // Between warps: every thread publishes its part, then reads the parts of the threads that differ from it
    // in the summed bits only. Threads that agree on all bits below 32 read the same order: same total.
    std::string exchange = absl::StrCat(name, "_exchange_", counter_++);
    int threads = tile_.schedule.threads;
    Emit(Alloc{exchange, DType::kF32, MemorySpace::kShared, {count, threads}, {}, 0, 16});
    EachRegister(name, count, [&](const Expr& r) { Emit(Store{exchange, {r, thread_}, element(r), nullptr}); });
    int keep = (threads - 1) & ~warps;
    Expr base = MakeBinary(BinaryOp::kBitAnd, thread_, IntLit(keep));
    EachRegister(name, count, [&](const Expr& r) {
      Expr total;
      for (int subset = 0;; subset = (subset - warps) & warps) {  // all subsets of the summed bits, ascending
        Expr part = MakeLoad(exchange, DType::kF32, {r, base + subset});
        total = total ? CombineTwo(combine.monoid, total, part) : part;
        if (subset == warps) break;
      }
      Emit(Store{name, {r}, total, nullptr});
    });
  }

  // Runs `emit` for each register of an array: directly for one, in an unrolled loop for more.
  template <typename F>
  void EachRegister(const std::string& name, int count, F emit) {
    if (count == 1) {
      emit(IntLit(0));
      return;
    }
    std::string axis = absl::StrCat(name, "_i", counter_++);
    ranges_.SetAxis(axis, IntLit(count));
    Block body = Inside([&] { emit(Axis(axis)); });
    Emit(For{axis, AxisRole::kFree, LoopKind::kUnroll, IntLit(count), {}, std::move(body)});
  }

  // Position in the register array: the register digits of each dimension, mixed radix. The indices must be
  // axes of the nest with the array's own layout; otherwise the tile would live in other threads.
  Expr RegisterIndex(const Layout& layout, const std::vector<Expr>& indices, const std::string& name) const {
    HACKC_CHECK(layout.size() == indices.size()) << name << ": " << indices.size() << " indices, rank " << layout.size();
    Expr index = IntLit(0);
    for (size_t d = 0; d < layout.size(); ++d) {
      if (layout[d].empty()) continue;
      const auto* var = As<Var>(indices[d]);
      auto it = var ? nest_.find(var->name) : nest_.end();
      HACKC_CHECK(it != nest_.end() && it->second.digits == layout[d])
          << name << ": dimension " << d << " is read at " << Print(indices[d]) << ", which has another layout";
      size_t next = 0;
      for (const Digit& digit : layout[d]) {
        if (digit.kind == Digit::Kind::kRegister) index = index * digit.extent + it->second.registers[next++];
      }
    }
    return index;
  }

  Expr Map(const Expr& e) const {
    // Register tiles first: their indices must still be axes.
    Expr tiles = Rewrite(e, [&](const Expr& node) -> Expr {
      const auto* load = As<Load>(node);
      if (load == nullptr) return nullptr;
      auto it = locals_.find(load->buffer);
      if (it == locals_.end() || it->second.shared) return nullptr;
      return MakeLoad(load->buffer, load->dtype, {RegisterIndex(it->second.layout, load->indices, load->buffer)});
    });
    return Substitute(tiles, [&](const std::string& name) -> Expr {
      auto it = coordinates_.find(name);
      return it == coordinates_.end() ? nullptr : it->second;
    });
  }

  template <typename F>
  Block Inside(F visit) {
    Block saved;
    std::swap(saved, out_);
    visit();
    std::swap(saved, out_);
    return saved;
  }

  template <typename T>
  void Emit(T node) {
    out_.push_back(MakeStmt(std::move(node)));
  }

  struct NestAxis {
    std::vector<Digit> digits;
    std::vector<Expr> registers;  // value of each register digit
  };

  const TileFn& tile_;
  RangeMap ranges_;
  Expr thread_;
  std::map<std::string, Expr> coordinates_;
  std::map<std::string, NestAxis> nest_;
  std::map<std::string, Local> locals_;
  std::map<std::string, Monoid> monoids_;
  int nest_mask_ = 0;
  Block out_;
  int counter_ = 0;
};

}  // namespace

absl::StatusOr<KernelFn> Distribute(const TileFn& tile) { return Distributor(tile).Run(); }

}  // namespace hackc::passes
