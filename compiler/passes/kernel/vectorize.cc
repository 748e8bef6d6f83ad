// SPDX-License-Identifier: MIT
#include "compiler/passes/kernel/vectorize.h"

#include <map>
#include <set>

#include "compiler/ir/linear.h"
#include "compiler/ir/ranges.h"
#include "compiler/ir/rewrite.h"

namespace hackc::passes {
namespace {

using namespace ir;  // NOLINT: a pass is about IR from end to end

Expr At(const Expr& e, const std::string& axis, const Expr& value) {
  return Substitute(
      e, [&](const std::string& name) -> Expr { return name == axis ? value : nullptr; });
}

bool Uses(const Expr& e, const std::string& axis) {
  for (const std::string& name : FreeVars(e)) {
    if (name == axis) return true;
  }
  return false;
}

// Coefficient of `axis` in the integer expression `e` when `e` is linear in it.
std::optional<int64_t> Coefficient(const Expr& e, const std::string& axis) {
  int64_t coefficient = 0;
  for (const Linear::Term& term : ToLinear(e).terms) {
    const auto* var = As<Var>(term.atom);
    if (var && var->name == axis) {
      coefficient = term.coefficient;
    } else if (Uses(term.atom, axis)) {
      return std::nullopt;
    }
  }
  return coefficient;
}

// Row length in elements of each buffer in memory; absent for register arrays.
struct Memory {
  Expr row;  // elements from one row to the next, padding included; null for rank 1
};

class Vectorizer {
 public:
  explicit Vectorizer(const KernelFn& kernel) : kernel_(kernel) {
    for (const BufferDecl& buffer : kernel.fn.buffers) {
      memory_[buffer.name] = {buffer.shape.size() > 1 ? buffer.shape.back() : nullptr};
    }
    WalkStmts(kernel.fn.body, [&](const Stmt& stmt) {
      const auto* alloc = As<Alloc>(stmt);
      if (alloc && alloc->space == MemorySpace::kShared) {
        if (alloc->slots > 1) rings_.insert(alloc->name);
        memory_[alloc->name] = {
            alloc->extents.size() > 1 ? IntLit(alloc->extents.back() + alloc->padding) : nullptr};
      }
    });
  }

  KernelFn Run() {
    KernelFn out = kernel_;
    out.fn.body = RewriteStmts(kernel_.fn.body, [&](const Stmt& stmt) { return Try(stmt); });
    return out;
  }

 private:
  std::optional<Block> Try(const Stmt& stmt) const {
    const auto* loop = As<For>(stmt);
    if (!loop || loop->kind != LoopKind::kUnroll || loop->body.size() != 1) return std::nullopt;
    const auto* store = As<Store>(loop->body.front());
    const auto* load = store ? As<Load>(store->value) : nullptr;
    if (!load || store->indices.empty() || load->indices.empty()) return std::nullopt;
    bool from_memory = memory_.count(load->buffer), to_memory = memory_.count(store->buffer);
    if (from_memory && to_memory && rings_.count(store->buffer))
      return TryRing(*loop, *store, *load);
    if (from_memory == to_memory) return std::nullopt;
    const std::vector<Expr>& address = from_memory ? load->indices : store->indices;
    const Expr& position = from_memory ? store->indices[0] : load->indices[0];
    const Expr& guard = from_memory ? load->guard : store->guard;
    if ((from_memory ? store->guard : load->guard) != nullptr) return std::nullopt;
    const std::string& axis = loop->axis;
    if (Coefficient(address.back(), axis) != 1 || Coefficient(position, axis) != 1)
      return std::nullopt;
    for (size_t i = 0; i + 1 < address.size(); ++i) {
      if (Uses(address[i], axis)) return std::nullopt;
    }
    int64_t extent = *AsInt(loop->extent);
    for (int64_t width = 16 / SizeOf(load->dtype); width > 1 && width * SizeOf(load->dtype) >= 4;
         width /= 2) {
      if (extent % width != 0 ||
          !Aligned(from_memory ? load->buffer : store->buffer, address, axis, width))
        continue;
      std::optional<Expr> whole = WholeGuard(guard, axis, width);
      if (!whole) continue;
      // Element i of vector j is loop iteration j * width + i.
      Expr first = extent == width ? IntLit(0) : Axis(axis) * width;
      std::vector<Expr> at;
      for (const Expr& index : address) at.push_back(At(index, axis, first));
      Expr guard_at = At(*whole, axis, first);
      Expr place = At(position, axis, first);
      Stmt access = from_memory
                        ? MakeStmt(VectorLoad{store->buffer, place, load->buffer, load->dtype, at,
                                              static_cast<int>(width), guard_at})
                        : MakeStmt(VectorStore{store->buffer, at, load->buffer, place,
                                               static_cast<int>(width), guard_at});
      if (extent == width) return Block{access};
      For copy = *loop;
      copy.extent = IntLit(extent / width);
      copy.body = {access};
      return Block{MakeStmt(std::move(copy))};
    }
    return std::nullopt;
  }

  // Memory to a ring: cp.async of 16, 8 or 4 bytes. Elements that do not fill 4 bytes stay stores.
  std::optional<Block> TryRing(const For& loop, const Store& store, const Load& load) const {
    const std::string& axis = loop.axis;
    if (store.guard && Uses(store.guard, axis)) return std::nullopt;
    for (const std::vector<Expr>* address : {&store.indices, &load.indices}) {
      if (Coefficient(address->back(), axis) != 1) return std::nullopt;
      for (size_t i = 0; i + 1 < address->size(); ++i) {
        if (Uses((*address)[i], axis)) return std::nullopt;
      }
    }
    int64_t extent = *AsInt(loop.extent);
    const int size = SizeOf(load.dtype);
    for (int64_t width = 16 / size; width * size >= 4; width /= 2) {
      if (extent % width != 0 || !Aligned(store.buffer, store.indices, axis, width) ||
          !Aligned(load.buffer, load.indices, axis, width)) {
        continue;
      }
      std::optional<Expr> whole = WholeGuard(load.guard, axis, width);
      if (!whole) continue;
      Expr first = extent == width ? IntLit(0) : Axis(axis) * width;
      AsyncCopy copy{store.buffer,           {}, load.buffer, {}, static_cast<int>(width * size),
                     At(*whole, axis, first)};
      for (const Expr& index : store.indices) copy.target_indices.push_back(At(index, axis, first));
      for (const Expr& index : load.indices) copy.source_indices.push_back(At(index, axis, first));
      Block body = {MakeStmt(std::move(copy))};
      if (store.guard) body = {MakeStmt(If{store.guard, body})};
      if (extent == width) return body;
      return Block{
          MakeStmt(For{axis, loop.role, LoopKind::kUnroll, IntLit(extent / width), {}, body})};
    }
    return std::nullopt;
  }

  // The flat address of the first element is a multiple of width for every iteration that starts a vector.
  bool Aligned(const std::string& buffer, const std::vector<Expr>& address, const std::string& axis,
               int64_t width) const {
    const Memory& memory = memory_.at(buffer);
    if (memory.row && !Divides(memory.row, width)) return false;
    return Divides(At(address.back(), axis, IntLit(0)), width);
  }

  // A guard that holds for a whole vector exactly when it holds for its first element; absent: not known.
  std::optional<Expr> WholeGuard(const Expr& guard, const std::string& axis, int64_t width) const {
    if (!guard || !Uses(guard, axis)) return guard;
    const auto* binary = As<Binary>(guard);
    if (!binary) return std::nullopt;
    if (binary->op == BinaryOp::kAnd) {
      auto a = WholeGuard(binary->a, axis, width), b = WholeGuard(binary->b, axis, width);
      if (!a || !b) return std::nullopt;
      return And(*a, *b);
    }
    // base + i < limit with base and limit multiples of the width.
    if (binary->op != BinaryOp::kLt || Uses(binary->b, axis) || Coefficient(binary->a, axis) != 1)
      return std::nullopt;
    if (!Divides(At(binary->a, axis, IntLit(0)), width) || !Divides(binary->b, width))
      return std::nullopt;
    return guard;
  }

  const KernelFn& kernel_;
  std::map<std::string, Memory> memory_;
  std::set<std::string> rings_;
};

}  // namespace

absl::StatusOr<KernelFn> Vectorize(const KernelFn& kernel) { return Vectorizer(kernel).Run(); }

}  // namespace hackc::passes
