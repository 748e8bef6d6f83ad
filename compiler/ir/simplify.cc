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
  Simplifier(const RangeMap& ranges, std::set<SimplifyRule>* used) : ranges_(ranges), used_(used) {}

  // `e` has simplified children; null keeps it.
  Expr Node(const Expr& e) const {
    Expr result = Rules(e);
    return result && Equal(result, e) ? nullptr : result;
  }

 private:
  // `result`, which `rule` gave.
  template <typename Result>
  Result By(SimplifyRule rule, Result result) const {
    if (used_ != nullptr) used_->insert(rule);
    return result;
  }

  Expr Rules(const Expr& e) const {
    if (const Select* select = As<Select>(e); select && Equal(select->a, select->b)) {
      return By(SimplifyRule::kSelectSame, select->a);
    }
    const Binary* n = As<Binary>(e);
    if (!n || IsFloat(n->a->dtype)) return nullptr;
    switch (n->op) {
      case BinaryOp::kAdd:
      case BinaryOp::kSub:
      case BinaryOp::kMul: {
        Expr sum = FromLinear(Recombine(ToLinear(e)), e->dtype);
        return Equal(sum, e) ? nullptr : By(SimplifyRule::kSum, sum);
      }
      case BinaryOp::kFloorDiv:
      case BinaryOp::kMod: return Quotient(*n, e);
      case BinaryOp::kMin:
      case BinaryOp::kMax: {
        const bool min = n->op == BinaryOp::kMin;
        const SimplifyRule rule = min ? SimplifyRule::kMin : SimplifyRule::kMax;
        if (ProveLessEqual(n->a, n->b, ranges_)) return By(rule, min ? n->a : n->b);
        return ProveLessEqual(n->b, n->a, ranges_) ? By(rule, min ? n->b : n->a) : nullptr;
      }
      case BinaryOp::kLt:
        if (ProveLess(n->a, n->b, ranges_)) return By(SimplifyRule::kLess, BoolLit(true));
        if (!ProveLessEqual(n->b, n->a, ranges_)) return nullptr;
        return By(SimplifyRule::kLess, BoolLit(false));
      case BinaryOp::kLe:
        if (ProveLessEqual(n->a, n->b, ranges_)) return By(SimplifyRule::kLessEqual, BoolLit(true));
        if (!ProveLess(n->b, n->a, ranges_)) return nullptr;
        return By(SimplifyRule::kLessEqual, BoolLit(false));
      case BinaryOp::kEq:
      case BinaryOp::kNe: return Equality(*n);
      case BinaryOp::kAnd:
      case BinaryOp::kOr:
        return Equal(n->a, n->b) ? By(SimplifyRule::kSameCondition, n->a) : nullptr;
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
        auto whole = Scaled(ToLinear(mod->a), k);
        Linear others = sum;
        others.terms.erase(others.terms.begin() + static_cast<int64_t>(std::max(i, j)));
        others.terms.erase(others.terms.begin() + static_cast<int64_t>(std::min(i, j)));
        auto joined = whole ? Sum(others, *whole) : std::nullopt;
        if (joined) return By(SimplifyRule::kRecombine, Recombine(*joined));
      }
    }
    return sum;
  }

  Expr Quotient(const Binary& n, const Expr& e) const {
    const bool modulo = n.op == BinaryOp::kMod;
    const auto divisor = AsInt(n.b);
    if (!divisor && ProveNonNegative(n.a, ranges_) && ProveLess(n.a, n.b, ranges_)) {
      return modulo ? By(SimplifyRule::kModuloSmall, n.a)
                    : By(SimplifyRule::kDivideSmall, IntLit(0, e->dtype));
    }
    if (divisor.value_or(0) <= 0) return nullptr;
    const Expr result = modulo ? Modulo(n.a, *divisor, e->dtype) : Divide(n.a, *divisor, e->dtype);
    // A dividend that leaves its dtype is another one, however small the quotient.
    return result && !IsExact(result, ranges_) && IsExact(e, ranges_) ? nullptr : result;
  }

  Expr Divide(const Expr& a, int64_t divisor, DType dtype) const {
    Divided parts = SplitBy(ToLinear(a), divisor);
    Expr rest = DivideRest(parts.rest, divisor, dtype);
    auto total = Sum(Recombine(parts.quotient), ToLinear(rest));
    if (!total) return nullptr;
    const bool split = !parts.quotient.terms.empty() || parts.quotient.constant != 0;
    Expr result = FromLinear(Recombine(*total), dtype);
    return split ? By(SimplifyRule::kDivideSplit, result) : result;
  }

  // rest // divisor, where no coefficient is a multiple of the divisor.
  Expr DivideRest(const Linear& rest, int64_t divisor, DType dtype) const {
    Expr sum = FromLinear(rest, dtype);
    Range bounds = Bounds(sum, ranges_);
    if (bounds.min > -kNoLimit && bounds.max < kNoLimit &&
        FloorDivide(bounds.min, divisor) == FloorDivide(bounds.max, divisor)) {
      return By(SimplifyRule::kDivideConstant, IntLit(FloorDivide(bounds.min, divisor), dtype));
    }
    if (auto tile = SplitTile(rest, divisor, dtype)) {  // (g * y + r) // (g * d) = y // d
      return By(SimplifyRule::kDivideTile,
                DivideRest(tile->parts.quotient, divisor / tile->size, dtype));
    }
    // (x // p + k) // d = (x + k * p) // (p * d)
    if (rest.terms.size() == 1 && rest.terms[0].coefficient == 1) {
      const Binary* inner = As<Binary>(rest.terms[0].atom);
      auto first = inner && inner->op == BinaryOp::kFloorDiv ? AsInt(inner->b) : std::nullopt;
      int64_t both = 0, offset = 0;
      if (first && *first > 0 && !__builtin_mul_overflow(*first, divisor, &both) &&
          !__builtin_mul_overflow(*first, rest.constant, &offset)) {
        return By(SimplifyRule::kDivideNested,
                  Divide(FromLinear(Recombine(ToLinear(inner->a + offset)), dtype), both, dtype));
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

  Expr Modulo(const Expr& a, int64_t divisor, DType dtype) const {
    const Divided parts = SplitBy(ToLinear(a), divisor);
    Expr result = ModuloRest(parts.rest, divisor, dtype);
    const bool split = !parts.quotient.terms.empty() || parts.quotient.constant != 0;
    return split ? By(SimplifyRule::kModuloSplit, result) : result;
  }

  // rest % divisor, where no coefficient is a multiple of the divisor and 0 <= constant < divisor.
  Expr ModuloRest(Linear rest, int64_t divisor, DType dtype) const {
    for (const Linear::Term& term : rest.terms) {  // (x % (d * n)) % d = x % d
      const Binary* inner = As<Binary>(term.atom);
      auto period = inner && inner->op == BinaryOp::kMod ? AsInt(inner->b) : std::nullopt;
      if (!period || *period <= 0 || *period % divisor != 0) continue;
      auto unwrapped = Scaled(ToLinear(inner->a), term.coefficient);
      Linear others = rest;
      std::erase_if(others.terms, [&](const Linear::Term& t) { return t.atom == term.atom; });
      auto joined = unwrapped ? Sum(others, *unwrapped) : std::nullopt;
      if (!joined) continue;
      return By(SimplifyRule::kModuloNested,
                ModuloRest(SplitBy(Recombine(*joined), divisor).rest, divisor, dtype));
    }
    for (Linear::Term& term : rest.terms) term.coefficient %= divisor;
    Expr sum = FromLinear(Recombine(rest), dtype);
    Range bounds = Bounds(sum, ranges_);
    if (bounds.min > -kNoLimit && bounds.max < kNoLimit) {
      int64_t turns = FloorDivide(bounds.min, divisor);
      if (turns == FloorDivide(bounds.max, divisor)) {
        return By(SimplifyRule::kModuloOneTurn,
                  FromLinear(Recombine(ToLinear(sum - turns * divisor)), dtype));
      }
    }
    // (g * y + r) % (g * d) = g * (y % d) + r
    if (auto tile = SplitTile(rest, divisor, dtype)) {
      int64_t turns = divisor / tile->size;
      Expr inner = ModuloRest(SplitBy(tile->parts.quotient, turns).rest, turns, dtype);
      Expr whole = inner * tile->size + FromLinear(tile->parts.rest, dtype);
      return By(SimplifyRule::kModuloTile, FromLinear(Recombine(ToLinear(whole)), dtype));
    }
    return Mod(sum, divisor);
  }

  Expr Equality(const Binary& n) const {
    bool equal = n.op == BinaryOp::kEq;
    if (n.a->dtype == DType::kBool) {
      return Equal(n.a, n.b) ? By(SimplifyRule::kSameCondition, BoolLit(equal)) : nullptr;
    }
    if (ProveLess(n.a, n.b, ranges_) || ProveLess(n.b, n.a, ranges_)) {
      return By(SimplifyRule::kEqual, BoolLit(!equal));
    }
    Linear difference = Difference(n.a, n.b);
    const bool same = difference.terms.empty() && difference.constant == 0;
    return same ? By(SimplifyRule::kEqual, BoolLit(equal)) : nullptr;
  }

  const RangeMap& ranges_;
  std::set<SimplifyRule>* const used_;
};

}  // namespace

Expr Simplify(const Expr& e, const RangeMap& ranges, std::set<SimplifyRule>* used) {
  const Simplifier simplifier(ranges, used);
  return Rewrite(e, [&](const Expr& node) { return simplifier.Node(node); });
}

}  // namespace hackc::ir
