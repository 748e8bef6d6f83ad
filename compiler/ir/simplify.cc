// SPDX-License-Identifier: MIT
#include "compiler/ir/simplify.h"

#include <algorithm>
#include <numeric>

#include "compiler/ir/bounds_proof.h"
#include "compiler/ir/linear.h"

namespace hackc::ir {
namespace {

// A sum taken apart by a divisor: total = divisor * quotient + rest.
struct Divided {
  Linear quotient, rest;
};
Divided SplitBy(const Linear& total, int64_t divisor) {
  Divided result;
  for (const Linear::Term& term : total.terms) {
    if (term.coefficient % divisor == 0) {
      result.quotient.terms.push_back({term.atom, term.coefficient / divisor});
    } else {
      result.rest.terms.push_back(term);
    }
  }
  result.quotient.constant = FloorDivide(total.constant, divisor);
  result.rest.constant = total.constant - divisor * result.quotient.constant;
  return result;
}

class Simplifier {
 public:
  explicit Simplifier(const RangeMap& ranges) : ranges_(ranges) {}

  // `e` has simplified children; null keeps it.
  Expr Node(const Expr& e) const {
    Expr result = Rules(e);
    return result && Equal(result, e) ? nullptr : result;
  }

 private:
  Expr Rules(const Expr& e) const {
    if (const Select* select = As<Select>(e); select && Equal(select->a, select->b))
      return select->a;
    const Binary* n = As<Binary>(e);
    if (!n || IsFloat(n->a->dtype)) return nullptr;
    switch (n->op) {
      case BinaryOp::kAdd:
      case BinaryOp::kSub:
      case BinaryOp::kMul: return AsSum(e);
      case BinaryOp::kFloorDiv:
      case BinaryOp::kMod: return Quotient(*n, e);
      case BinaryOp::kMin:
      case BinaryOp::kMax: {
        const bool min = n->op == BinaryOp::kMin;
        if (ProveLessEqual(n->a, n->b, ranges_)) return min ? n->a : n->b;
        return ProveLessEqual(n->b, n->a, ranges_) ? (min ? n->b : n->a) : nullptr;
      }
      case BinaryOp::kLt:
        if (ProveLess(n->a, n->b, ranges_)) return BoolLit(true);
        return ProveLessEqual(n->b, n->a, ranges_) ? BoolLit(false) : nullptr;
      case BinaryOp::kLe:
        if (ProveLessEqual(n->a, n->b, ranges_)) return BoolLit(true);
        return ProveLess(n->b, n->a, ranges_) ? BoolLit(false) : nullptr;
      case BinaryOp::kEq:
      case BinaryOp::kNe: return Equality(*n);
      case BinaryOp::kAnd:
      case BinaryOp::kOr: return Equal(n->a, n->b) ? n->a : nullptr;
      default: return nullptr;
    }
  }

  // c * (x // n) ... with c = k * n and k * (x % n) together are k * x.
  Linear Recombine(Linear sum) const {
    for (size_t i = 0; i < sum.terms.size(); ++i) {
      const Binary* mod = As<Binary>(sum.terms[i].atom);
      if (!mod || mod->op != BinaryOp::kMod) continue;
      auto divisor = AsInt(mod->b);
      int64_t k = sum.terms[i].coefficient, wanted = 0;
      if (!divisor || *divisor <= 0 || __builtin_mul_overflow(k, *divisor, &wanted)) continue;
      for (size_t j = 0; j < sum.terms.size(); ++j) {
        const Binary* quotient = As<Binary>(sum.terms[j].atom);
        if (!quotient || quotient->op != BinaryOp::kFloorDiv ||
            sum.terms[j].coefficient != wanted || AsInt(quotient->b) != divisor ||
            !Equal(quotient->a, mod->a)) {
          continue;
        }
        Linear rest = sum;
        rest.terms.erase(rest.terms.begin() + static_cast<int64_t>(j));
        if (const auto joined = Replaced(rest, sum.terms[i].atom, mod->a))
          return Recombine(*joined);
      }
    }
    return sum;
  }
  Expr AsSum(const Expr& e) const { return FromLinear(Recombine(ToLinear(e)), e->dtype); }

  Expr Quotient(const Binary& n, const Expr& e) const {
    const bool modulo = n.op == BinaryOp::kMod;
    const auto divisor = AsInt(n.b);
    if (!divisor && ProveNonNegative(n.a, ranges_) && ProveLess(n.a, n.b, ranges_))
      return modulo ? n.a : IntLit(0, e->dtype);
    if (divisor.value_or(0) <= 0) return nullptr;
    const Expr result = modulo
                            ? ModuloRest(SplitBy(ToLinear(n.a), *divisor).rest, *divisor, e->dtype)
                            : Divide(n.a, *divisor, e->dtype);
    // A dividend that leaves its dtype is another one, however small the quotient.
    return result && !IsExact(result, ranges_) && IsExact(e, ranges_) ? nullptr : result;
  }

  Expr Divide(const Expr& a, int64_t divisor, DType dtype) const {
    const Divided parts = SplitBy(ToLinear(a), divisor);
    auto total = Sum(Recombine(parts.quotient), ToLinear(DivideRest(parts.rest, divisor, dtype)));
    return total ? FromLinear(Recombine(*total), dtype) : nullptr;
  }

  // sum // divisor, where it is the same for all values.
  std::optional<int64_t> Turns(const Expr& sum, int64_t divisor) const {
    const Range bounds = Bounds(sum, ranges_);
    if (bounds.min <= -kNoLimit || bounds.max >= kNoLimit) return std::nullopt;
    const int64_t turns = FloorDivide(bounds.min, divisor);
    return turns == FloorDivide(bounds.max, divisor) ? std::optional(turns) : std::nullopt;
  }

  // rest // divisor, where no coefficient is a multiple of the divisor.
  Expr DivideRest(const Linear& rest, int64_t divisor, DType dtype) const {
    const Expr sum = FromLinear(rest, dtype);
    if (const auto turns = Turns(sum, divisor)) return IntLit(*turns, dtype);
    if (auto tile = SplitTile(rest, divisor, dtype))  // (g * y + r) // (g * d) = y // d
      return DivideRest(tile->parts.quotient, divisor / tile->size, dtype);
    // (x // p + k) // d = (x + k * p) // (p * d)
    if (rest.terms.size() == 1 && rest.terms[0].coefficient == 1) {
      const Binary* inner = As<Binary>(rest.terms[0].atom);
      auto first = inner && inner->op == BinaryOp::kFloorDiv ? AsInt(inner->b) : std::nullopt;
      int64_t both = 0, offset = 0;
      if (first && *first > 0 && !__builtin_mul_overflow(*first, divisor, &both) &&
          !__builtin_mul_overflow(*first, rest.constant, &offset)) {
        return Divide(AsSum(inner->a + offset), both, dtype);
      }
    }
    return FloorDiv(sum, divisor);
  }

  // total = g * quotient + rest with 0 <= rest < g, for the largest such g > 1 that divides the
  // divisor: how a tiled axis meets a reshape.
  struct Tile {
    int64_t size = 1;
    Divided parts;
  };
  std::optional<Tile> SplitTile(const Linear& total, int64_t divisor, DType dtype) const {
    std::optional<Tile> best;
    std::vector<int64_t> sizes = {divisor};
    for (const Linear::Term& term : total.terms) {
      sizes.push_back(std::gcd(term.coefficient, divisor));
      sizes[0] = std::gcd(term.coefficient, sizes[0]);  // common to all
    }
    for (int64_t size : sizes) {
      if (size <= (best ? best->size : 1)) continue;
      Divided parts = SplitBy(total, size);
      Range bounds = Bounds(FromLinear(parts.rest, dtype), ranges_);
      if (bounds.min >= 0 && bounds.max < size) best = Tile{size, std::move(parts)};
    }
    return best;
  }

  // rest % divisor, where no coefficient is a multiple of the divisor and 0 <= constant < divisor.
  Expr ModuloRest(Linear rest, int64_t divisor, DType dtype) const {
    for (const Linear::Term& term : rest.terms) {  // (x % (d * n)) % d = x % d
      const Binary* inner = As<Binary>(term.atom);
      auto period = inner && inner->op == BinaryOp::kMod ? AsInt(inner->b) : std::nullopt;
      if (!period || *period <= 0 || *period % divisor != 0) continue;
      if (const auto unwrapped = Replaced(rest, term.atom, inner->a))
        return ModuloRest(SplitBy(Recombine(*unwrapped), divisor).rest, divisor, dtype);
    }
    for (Linear::Term& term : rest.terms) term.coefficient %= divisor;
    Expr sum = FromLinear(Recombine(rest), dtype);
    if (const auto turns = Turns(sum, divisor)) return AsSum(sum - *turns * divisor);
    // (g * y + r) % (g * d) = g * (y % d) + r
    if (auto tile = SplitTile(rest, divisor, dtype)) {
      int64_t turns = divisor / tile->size;
      Expr inner = ModuloRest(SplitBy(tile->parts.quotient, turns).rest, turns, dtype);
      return AsSum(inner * tile->size + FromLinear(tile->parts.rest, dtype));
    }
    return Mod(sum, divisor);
  }

  Expr Equality(const Binary& n) const {
    bool equal = n.op == BinaryOp::kEq;
    if (n.a->dtype == DType::kBool) return Equal(n.a, n.b) ? BoolLit(equal) : nullptr;
    if (ProveLess(n.a, n.b, ranges_) || ProveLess(n.b, n.a, ranges_)) return BoolLit(!equal);
    return SameSum(n.a, n.b) ? BoolLit(equal) : nullptr;
  }

  const RangeMap& ranges_;
};

}  // namespace

Expr Simplify(const Expr& e, const RangeMap& ranges) {
  const Simplifier simplifier(ranges);
  return Rewrite(e, [&](const Expr& node) { return simplifier.Node(node); });
}

}  // namespace hackc::ir
