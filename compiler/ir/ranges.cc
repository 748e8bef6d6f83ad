// SPDX-License-Identifier: MIT
#include "compiler/ir/ranges.h"

#include <algorithm>
#include <numeric>

#include "compiler/ir/linear.h"

namespace hackc::ir {
namespace {

int64_t Clamp(__int128 value) {
  if (value > kNoLimit) return kNoLimit;
  if (value < -kNoLimit) return -kNoLimit;
  return static_cast<int64_t>(value);
}
Range Clamp(Range range) { return {Clamp(range.min), Clamp(range.max)}; }

// Unknown sides stay unknown: an infinite minimum plus five is not a finite one.
int64_t AddSide(int64_t a, int64_t b, int64_t infinite) {
  if (a == infinite || b == infinite) return infinite;
  return Clamp(static_cast<__int128>(a) + b);
}

Range Add(Range a, Range b) {
  return {AddSide(a.min, b.min, -kNoLimit), AddSide(a.max, b.max, kNoLimit)};
}

int64_t MulSide(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (std::abs(a) == kNoLimit || std::abs(b) == kNoLimit) {
    return ((a > 0) == (b > 0)) ? kNoLimit : -kNoLimit;
  }
  return Clamp(static_cast<__int128>(a) * b);
}

// Of what grows or falls with each operand.
Range Corners(Range a, Range b, int64_t (*op)(int64_t, int64_t)) {
  const auto [low, high] =
      std::minmax({op(a.min, b.min), op(a.min, b.max), op(a.max, b.min), op(a.max, b.max)});
  return {low, high};
}

Range Mul(Range a, Range b) { return Corners(a, b, MulSide); }

int64_t DivSide(int64_t a, int64_t b) { return std::abs(a) == kNoLimit ? a : FloorDivide(a, b); }

Range FloorDivide(Range a, Range b) { return b.min <= 0 ? kUnknownRange : Corners(a, b, DivSide); }

Range Union(Range a, Range b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }

Range OfDType(DType dtype) {
  if (dtype == DType::kBool) return {0, 1};
  if (dtype == DType::kI32) return {INT32_MIN, INT32_MAX};
  return kUnknownRange;
}

// Bounds of a product of atoms, factor by factor.
Range BoundsOfAtom(const Expr& e, const RangeMap& ranges) {
  const Binary* product = As<Binary>(e);
  if (product && product->op == BinaryOp::kMul) {
    return Mul(BoundsOfAtom(product->a, ranges), BoundsOfAtom(product->b, ranges));
  }
  return Bounds(e, ranges);
}

Range BoundsOfLinear(const Linear& linear, const RangeMap& ranges) {
  Range total = {Clamp(linear.constant), Clamp(linear.constant)};
  for (const Linear::Term& term : linear.terms) {
    total = Add(total, Mul(BoundsOfAtom(term.atom, ranges), {term.coefficient, term.coefficient}));
  }
  return total;
}

Range BoundsOfBinary(const Binary& n, const Expr& e, const RangeMap& ranges) {
  if (IsSum(e) && n.op != BinaryOp::kShl) {
    // One atom again: coefficients that overflow. Intervals still hold, part by part.
    Linear linear = ToLinear(e);
    if (linear.terms.size() == 1 && linear.terms[0].atom == e && n.op != BinaryOp::kMul) {
      Range b = Bounds(n.b, ranges);
      if (n.op == BinaryOp::kSub) b = Mul(b, {-1, -1});
      return Add(Bounds(n.a, ranges), b);
    }
    return BoundsOfLinear(linear, ranges);
  }
  if (e->dtype == DType::kBool) return {0, 1};
  Range a = Bounds(n.a, ranges), b = Bounds(n.b, ranges);
  // Where bounds contradict each other, which verifiers report, nothing is known.
  if (a.min > a.max || b.min > b.max) return OfDType(e->dtype);
  switch (n.op) {
    case BinaryOp::kFloorDiv: return FloorDivide(a, b);
    case BinaryOp::kMod:
      if (b.min <= 0) return kUnknownRange;
      if (a.min >= 0 && a.max < b.min) return a;
      return {0, std::min(a.min >= 0 ? a.max : kNoLimit, b.max - 1)};
    case BinaryOp::kMin: return {std::min(a.min, b.min), std::min(a.max, b.max)};
    case BinaryOp::kMax: return {std::max(a.min, b.min), std::max(a.max, b.max)};
    case BinaryOp::kBitAnd:
      if (b.min >= 0) return {0, a.min >= 0 ? std::min(a.max, b.max) : b.max};
      return a.min >= 0 ? Range{0, a.max} : OfDType(e->dtype);
    case BinaryOp::kBitXor: {
      int64_t high = std::max(a.max, b.max), all_ones = 1;
      if (a.min < 0 || b.min < 0 || high >= kNoLimit) return OfDType(e->dtype);
      while (all_ones <= high) all_ones *= 2;
      return {0, all_ones - 1};
    }
    case BinaryOp::kShl:
      if (b.min < 0 || b.max > 31) return OfDType(e->dtype);
      return Union(Mul(a, {int64_t{1} << b.min, int64_t{1} << b.min}),
                   Mul(a, {int64_t{1} << b.max, int64_t{1} << b.max}));
    case BinaryOp::kShr:
      if (b.min < 0 || b.max > 59) return OfDType(e->dtype);
      return FloorDivide(a, {int64_t{1} << b.min, int64_t{1} << b.max});
    default: return OfDType(e->dtype);
  }
}

// Lower bound of a sum in which axes are pushed to their end: 0, or extent - 1 where they count
// negatively; and minima that count negatively, maxima that count positively, to one of their
// sides. Axes whose extent holds other axes go first, so each substitution only adds axes still to
// come.
bool NonNegative(const Linear& linear, const RangeMap& ranges, int depth, int& steps) {
  if (BoundsOfLinear(linear, ranges).min >= 0) return true;
  if (depth == 0 || --steps < 0) return false;
  for (const Linear::Term& term : linear.terms) {
    auto pushed_to = [&](const Expr& end) {
      const auto pushed = Replaced(linear, term.atom, end);
      return pushed && NonNegative(*pushed, ranges, depth - 1, steps);
    };
    if (const Binary* clamp = As<Binary>(term.atom)) {
      const bool is_bound =
          term.coefficient < 0 ? clamp->op == BinaryOp::kMin : clamp->op == BinaryOp::kMax;
      if (is_bound && (pushed_to(clamp->a) || pushed_to(clamp->b))) return true;
    }
    const Var* var = As<Var>(term.atom);
    Expr extent = var ? ranges.FindExtent(var->name) : nullptr;
    if (!extent || AsInt(extent)) continue;
    if (pushed_to(term.coefficient < 0 ? extent - 1 : IntLit(0))) return true;
  }
  return false;
}

}  // namespace

RangeMap::RangeMap(const std::vector<SymbolDecl>& symbols) {
  for (const SymbolDecl& symbol : symbols) SetSymbol(symbol.name, {symbol.min, symbol.max});
}
void RangeMap::SetVar(const std::string& name, Range range) {
  vars_[name] = Clamp(range);
  extents_.erase(name);
}
void RangeMap::SetAxis(const std::string& name, const Expr& extent) {
  if (!IsInteger(extent->dtype)) return SetVar(name, OfDType(DType::kI32));
  vars_[name] = {0, std::max<int64_t>(0, Bounds(extent, *this).max - 1)};
  extents_[name] = extent;
}

bool IsSum(const Expr& e) {
  if (IsFloat(e->dtype)) return false;
  if (const Unary* unary = As<Unary>(e)) return unary->op == UnaryOp::kNeg;
  const Binary* binary = As<Binary>(e);
  return binary && (binary->op == BinaryOp::kAdd || binary->op == BinaryOp::kSub ||
                    binary->op == BinaryOp::kMul || binary->op == BinaryOp::kShl);
}

Range Bounds(const Expr& e, const RangeMap& ranges) {
  if (auto value = AsInt(e)) return {Clamp(*value), Clamp(*value)};
  if (const Var* var = As<Var>(e)) return ranges.OfVar(var->name, OfDType(e->dtype));
  if (const Symbol* s = As<Symbol>(e)) return ranges.OfVar(VarOf(s->name), OfDType(e->dtype));
  if (const Builtin* b = As<Builtin>(e)) return ranges.OfVar(VarOf(b->kind), {0, INT32_MAX});
  if (const Select* select = As<Select>(e)) {
    return Union(Bounds(select->a, ranges), Bounds(select->b, ranges));
  }
  if (const Cast* cast = As<Cast>(e); cast && !IsFloat(cast->a->dtype)) {
    Range inner = Bounds(cast->a, ranges), limits = OfDType(e->dtype);
    return inner.min >= limits.min && inner.max <= limits.max ? inner : limits;
  }
  if (const Unary* unary = As<Unary>(e);
      unary && unary->op == UnaryOp::kNeg && !IsFloat(e->dtype)) {
    return Mul(Bounds(unary->a, ranges), {-1, -1});
  }
  if (const Binary* binary = As<Binary>(e); binary && !IsFloat(e->dtype)) {
    return BoundsOfBinary(*binary, e, ranges);
  }
  return OfDType(e->dtype);
}

int64_t KnownDivisor(const Expr& e) {
  if (auto value = AsInt(e)) return *value == INT64_MIN ? int64_t{1} << 62 : std::abs(*value);
  if (const Select* s = As<Select>(e)) return std::gcd(KnownDivisor(s->a), KnownDivisor(s->b));
  const Binary* n = As<Binary>(e);
  if (!n) return 1;
  int64_t a = KnownDivisor(n->a), b = KnownDivisor(n->b);
  switch (n->op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kMin:
    case BinaryOp::kMax:
    case BinaryOp::kMod:  // a - b * (a // b)
      return std::gcd(a, b);
    case BinaryOp::kMul: {
      int64_t product = 0;
      return __builtin_mul_overflow(a, b, &product) ? std::max(a, b) : product;
    }
    case BinaryOp::kFloorDiv: {
      int64_t divisor = AsInt(n->b).value_or(0);
      return divisor > 0 && a % divisor == 0 ? a / divisor : 1;
    }
    case BinaryOp::kShl: {
      int64_t bits = AsInt(n->b).value_or(-1);
      return bits >= 0 && bits < 31 && a < (int64_t{1} << 31) ? a << bits : a;
    }
    default: return 1;
  }
}

bool Divides(const Expr& e, int64_t n) { return KnownDivisor(e) % n == 0; }

Expr WithoutLoads(const Expr& e) {
  return Rewrite(e, [](const Expr& node) -> Expr {
    const Binary* clamp = As<Binary>(node);
    if (!clamp || clamp->op != BinaryOp::kMin) return nullptr;
    if (!Loads(clamp->a).empty()) return clamp->b;
    return Loads(clamp->b).empty() ? nullptr : clamp->a;
  });
}

bool Grows(const Expr& e, const std::string& name) {
  if (As<Var>(e) || !Uses(e, name)) return true;
  const auto* binary = As<Binary>(e);
  if (binary == nullptr || !Grows(binary->a, name)) return false;
  switch (binary->op) {
    case BinaryOp::kAdd:
    case BinaryOp::kMin:
    case BinaryOp::kMax: return Grows(binary->b, name);
    case BinaryOp::kSub: return !Uses(binary->b, name);
    case BinaryOp::kMul:
    case BinaryOp::kFloorDiv: return AsInt(binary->b).value_or(0) > 0;
    default: return false;
  }
}

bool ProveNonNegative(const Expr& e, const RangeMap& ranges) {
  constexpr int kMaxSubstitutions = 4;  // one after another
  int steps = 2000;                     // of all searches for them
  return NonNegative(ToLinear(e), ranges, kMaxSubstitutions, steps);
}
bool ProveLessEqual(const Expr& a, const Expr& b, const RangeMap& ranges) {
  return IntegersAgree(a, b) && ProveNonNegative(MakeBinary(BinaryOp::kSub, b, a), ranges);
}
bool ProveLess(const Expr& a, const Expr& b, const RangeMap& ranges) {
  return IntegersAgree(a, b) && ProveNonNegative(MakeBinary(BinaryOp::kSub, b, a) - 1, ranges);
}

}  // namespace hackc::ir
