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

class Vectorizer {
 public:
  explicit Vectorizer(const KernelFn& kernel) : kernel_(kernel) {
    for (const BufferDecl& buffer : kernel.fn.buffers) {
      memory_[buffer.name] = buffer.shape.size() > 1 ? buffer.shape.back() : nullptr;
    }
    WalkStmts(kernel.fn.body, [&](const Alloc& alloc) {
      if (alloc.space != MemorySpace::kShared) return;
      if (alloc.slots > 1) rings_.insert(alloc.name);
      memory_[alloc.name] =
          alloc.extents.size() > 1 ? IntLit(alloc.extents.back() + alloc.padding) : nullptr;
    });
  }

  KernelFn Run() {
    KernelFn out = kernel_;
    out.fn.body = RewriteStmts(kernel_.fn.body, [&](const For& loop) { return Try(loop); });
    return out;
  }

 private:
  // Memory to registers or back: vectors of 16, 8 or 4 bytes. Memory to a ring: cp.async of as
  // many; elements that do not fill 4 bytes stay stores.
  std::optional<Block> Try(const For& loop) const {
    if (loop.kind != LoopKind::kUnroll || loop.body.size() != 1) return std::nullopt;
    const auto* store = As<Store>(loop.body.front());
    const auto* load = store ? As<Load>(store->value) : nullptr;
    if (!load || store->indices.empty() || load->indices.empty()) return std::nullopt;
    const bool from_memory = memory_.count(load->buffer), to_memory = memory_.count(store->buffer);
    const bool ring = from_memory && to_memory && rings_.count(store->buffer);
    if (from_memory == to_memory && !ring) return std::nullopt;
    const std::string& axis = loop.axis;
    const Expr& guard = from_memory ? load->guard : store->guard;
    const Expr& other_guard = from_memory ? store->guard : load->guard;
    if (other_guard && (!ring || Uses(other_guard, axis))) return std::nullopt;
    for (const std::vector<Expr>* address : {&store->indices, &load->indices}) {
      if (Coefficient(address->back(), axis) != 1) return std::nullopt;
      for (size_t i = 0; i + 1 < address->size(); ++i) {
        if (Uses((*address)[i], axis)) return std::nullopt;
      }
    }
    const int64_t extent = *AsInt(loop.extent);
    const int size = SizeOf(load->dtype);
    for (int width = 16 / size; width * size >= 4 && width > (ring ? 0 : 1); width /= 2) {
      const std::optional<Expr> whole = WholeGuard(guard, axis, width);
      if (extent % width != 0 || !whole || !Aligned(store->buffer, store->indices, axis, width) ||
          !Aligned(load->buffer, load->indices, axis, width)) {
        continue;
      }
      // Element i of vector j is loop iteration j * width + i.
      const Expr first = extent == width ? IntLit(0) : Axis(axis) * width;
      const Expr when = Substitute(*whole, axis, first);
      std::vector<Expr> to = store->indices, from = load->indices;
      for (std::vector<Expr>* address : {&to, &from}) {
        for (Expr& index : *address) index = Substitute(index, axis, first);
      }
      Block body = {ring ? MakeStmt(AsyncCopy{store->buffer, to, load->buffer, from, width * size,
                                              when, store->cache})
                    : from_memory ? MakeStmt(VectorLoad{store->buffer, to[0], load->buffer,
                                                        load->dtype, from, width, when})
                                  : MakeStmt(VectorStore{store->buffer, to, load->buffer, from[0],
                                                         width, when})};
      if (other_guard) body = {MakeStmt(If{other_guard, body})};
      if (extent == width) return body;
      For copy = loop;
      copy.extent = IntLit(extent / width);
      copy.body = std::move(body);
      return Block{MakeStmt(std::move(copy))};
    }
    return std::nullopt;
  }

  // The flat address of the first element is a multiple of width for every iteration that starts a
  // vector.
  bool Aligned(const std::string& buffer, const std::vector<Expr>& address, const std::string& axis,
               int64_t width) const {
    const Expr* row = FindOrNull(memory_, buffer);
    if (!row) return true;  // registers
    if (*row && !Divides(*row, width)) return false;
    return Divides(Substitute(address.back(), axis, IntLit(0)), width);
  }

  // A guard that holds for a whole vector exactly when it holds for its first element; absent: not
  // known.
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
    if (!Divides(Substitute(binary->a, axis, IntLit(0)), width) || !Divides(binary->b, width))
      return std::nullopt;
    return guard;
  }

  const KernelFn& kernel_;
  // Of each buffer in memory, elements from one row to the next, padding included; null for rank 1.
  std::map<std::string, Expr> memory_;
  std::set<std::string> rings_;
};

}  // namespace

absl::StatusOr<KernelFn> Vectorize(const KernelFn& kernel) { return Vectorizer(kernel).Run(); }

}  // namespace hackc::passes
