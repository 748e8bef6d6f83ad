// SPDX-License-Identifier: MIT
#include "compiler/ir/bounds_proof.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "compiler/ir/linear.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/simplify.h"

namespace hackc::ir {
namespace {

// Adds to `factors` those of `e` that are no positive constants; gives the product of those that
// are.
int64_t Factors(const Expr& e, std::vector<Expr>& factors) {
  int64_t constant = 1;
  for (const Expr& factor : Flatten(e, BinaryOp::kMul)) {
    const int64_t value = AsInt(factor).value_or(0);
    const bool counts = value > 0 && value < (1 << 30) && constant < (1 << 30);
    counts ? void(constant *= value) : factors.push_back(factor);
  }
  return constant;
}

// a / b where b's factors are among a's.
std::optional<Expr> Quotient(const Expr& a, const Expr& b) {
  std::vector<Expr> of_a, of_b;
  const int64_t constant_a = Factors(a, of_a), constant_b = Factors(b, of_b);
  if (constant_a % constant_b != 0) return std::nullopt;
  for (const Expr& factor : of_b) {
    auto it = absl::c_find_if(of_a, [&](const Expr& e) { return Equal(e, factor); });
    if (it == of_a.end()) return std::nullopt;
    of_a.erase(it);
  }
  Expr quotient = IntLit(constant_a / constant_b);
  for (const Expr& factor : of_a) quotient = quotient * factor;
  return quotient;
}

// Proofs walk trees, in which stands as often as it is used what lets share.
constexpr int kMaxLetNodes = 1000;
bool IsWithin(const Expr& e, int& nodes) {
  return !e || (--nodes >= 0 && absl::c_all_of(Children(e), [&](const Expr& child) {
    return IsWithin(child, nodes);
  }));
}

// How often `fact` fits into `goal`: the ratio of their coefficients of a common atom; 1 when there
// is none.
int64_t Multiple(const Expr& goal, const Expr& fact) {
  const Linear of_goal = ToLinear(goal), of_fact = ToLinear(fact);
  for (const Linear::Term& f : of_fact.terms) {
    for (const Linear::Term& g : of_goal.terms) {
      if (!Equal(f.atom, g.atom) || g.coefficient % f.coefficient != 0) continue;
      if (const int64_t ratio = g.coefficient / f.coefficient; ratio > 1) return ratio;
    }
  }
  return 1;
}

}  // namespace

bool IsExact(const Expr& e, const RangeMap& ranges) {
  const auto below = [&](const Expr& parent) {
    return absl::c_all_of(Children(parent),
                          [&](const Expr& child) { return !child || IsExact(child, ranges); });
  };
  if (As<Load>(e)) return true;
  if (!IsSum(e) && !AsInt(e)) return below(e);
  const Range bounds = Bounds(e, ranges);
  const Range limits = e->dtype == DType::kI32 ? Range{INT32_MIN, INT32_MAX} : kUnknownRange;
  if (bounds.min < limits.min || bounds.max > limits.max || bounds.min == -kNoLimit ||
      bounds.max == kNoLimit) {
    return false;
  }
  // Sums wrap: what leaves the dtype inside of one and is back at its end does no harm.
  const Linear linear = ToLinear(e);
  return absl::c_all_of(linear.terms, [&](const Linear::Term& term) {
    return IsSum(term.atom) ? below(term.atom) : IsExact(term.atom, ranges);
  });
}

Expr MaskOf(const Expr& score) {
  const Select* select = As<Select>(score);
  const auto* otherwise = select ? As<FloatLiteral>(select->b) : nullptr;
  if (!otherwise || otherwise->value != -std::numeric_limits<double>::infinity()) return nullptr;
  return And(select->condition, MaskOf(select->a));
}

std::vector<Expr> BeginsOf(const Expr& condition, const std::string& axis, const RangeMap& ranges) {
  std::vector<Expr> begins;
  for (const Expr& part : Flatten(condition, BinaryOp::kAnd)) {
    const Binary* order = As<Binary>(part);
    if (!order || order->a->dtype != DType::kI32) continue;
    const bool less = order->op == BinaryOp::kLt;
    if (!less && order->op != BinaryOp::kLe) continue;
    // a <= b is axis >= a - b + axis, where that holds no axis.
    const Expr begin = Simplify(order->a - order->b + Axis(axis) + (less ? 1 : 0), ranges);
    if (!Uses(begin, axis) && IsExact(begin, ranges)) begins.push_back(begin);
  }
  return begins;
}

void AccessProver::SetAxis(const std::string& name, const Expr& extent) {
  const Expr resolved = Resolve(extent);
  ranges_.SetAxis(name, resolved);
  AssumeBelow(Axis(name), resolved);
}

// An axis below max(min(a, b), 0) is below both: there is one only where the minimum is above 0.
void AccessProver::AssumeBelow(const Expr& axis, const Expr& extent) {
  const Binary* clamp = As<Binary>(extent);
  if (clamp && clamp->op == BinaryOp::kMax && AsInt(clamp->b) == 0) {
    AssumeBelow(axis, clamp->a);
  } else if (clamp && clamp->op == BinaryOp::kMin) {
    for (const Expr& limit : {clamp->a, clamp->b}) {
      facts_.push_back(limit - axis - 1);
      AssumeBelow(axis, limit);
    }
  }
}

void AccessProver::SetBuiltin(BuiltinKind kind, const Expr& extent) {
  SetAxis(VarOf(kind), extent);
}

void AccessProver::SetLet(const std::string& name, const Expr& value) {
  const Expr resolved = Resolve(value);
  int nodes = kMaxLetNodes;
  if (IsWithin(resolved, nodes)) {
    lets_[name] = resolved;
  } else if (IsExact(resolved, ranges_)) {
    ranges_.SetVar(name, Bounds(resolved, ranges_));
  }
}

Expr AccessProver::Resolve(const Expr& e) {
  return Rewrite(e, [&](const Expr& node) { return ResolveNode(node); });
}

Expr AccessProver::ResolveNode(const Expr& e) {
  if (const Builtin* builtin = As<Builtin>(e)) return Axis(VarOf(builtin->kind));
  if (const Var* var = As<Var>(e)) return FindOr(lets_, var->name);
  const Binary* binary = As<Binary>(e);
  if (!binary || (binary->op != BinaryOp::kFloorDiv && binary->op != BinaryOp::kMod))
    return nullptr;
  const Var* axis = As<Var>(binary->a);
  Expr extent = axis ? ranges_.FindExtent(axis->name) : nullptr;
  if (!extent || Bounds(binary->b, ranges_).min < 0) return nullptr;
  if (const Expr* known = FindOrNull(axes_, e)) return *known;
  std::optional<Expr> quotient = Quotient(extent, binary->b);
  if (!quotient) return nullptr;
  // The name holds the expression, which no name of a program can.
  std::string name = Print(e);
  ranges_.SetAxis(name, binary->op == BinaryOp::kMod ? binary->b : *quotient);
  return axes_[e] = Axis(std::move(name));
}

void AccessProver::Assume(const Expr& condition, bool holds) {
  if (!condition) return;
  if (const auto value = AsInt(condition)) {
    if ((*value != 0) != holds) facts_.push_back(IntLit(-1));  // what stands here is never reached
    return;
  }
  if (const Unary* unary = As<Unary>(condition); unary && unary->op == UnaryOp::kNot) {
    return Assume(unary->a, !holds);
  }
  const Binary* binary = As<Binary>(condition);
  if (!binary) return;
  if (binary->op == (holds ? BinaryOp::kAnd : BinaryOp::kOr)) {
    Assume(binary->a, holds);
    Assume(binary->b, holds);
    return;
  }
  if (IsFloat(binary->a->dtype) || binary->a->dtype == DType::kBool) return;
  const Expr a = Resolve(binary->a), b = Resolve(binary->b);
  if (!IsExact(a, ranges_) || !IsExact(b, ranges_)) return;
  // a < b; where a number divides both, they are at least that far apart.
  auto less = [&](const Expr& small, const Expr& large) {
    const int64_t gap = std::gcd(KnownDivisor(small), KnownDivisor(large));
    facts_.push_back(large - small - std::max<int64_t>(1, gap));
  };
  if (binary->op == BinaryOp::kLt) {
    holds ? less(a, b) : facts_.push_back(a - b);
  } else if (binary->op == BinaryOp::kLe) {
    holds ? facts_.push_back(b - a) : less(b, a);
  } else if ((binary->op == BinaryOp::kEq && holds) || (binary->op == BinaryOp::kNe && !holds)) {
    facts_.push_back(a - b);
    facts_.push_back(b - a);
  }
}

bool AccessProver::Prove(const Expr& goal) {
  if (ProveNonNegative(goal, ranges_)) return true;
  for (const Expr& fact : facts_) {
    if (AsInt(fact).value_or(0) < 0) return true;
  }
  // Goals that remain once a fact is used, in the multiple that meets the goal; then a second one.
  std::vector<Expr> goals = {goal};
  for (int used = 0; used < 2; ++used) {
    std::vector<Expr> left;
    for (const Expr& from : goals) {
      for (const Expr& fact : facts_) {
        if (fact->dtype != from->dtype) continue;
        left.push_back(from - fact * Multiple(from, fact));
        if (ProveNonNegative(left.back(), ranges_)) return true;
      }
    }
    goals = std::move(left);
  }
  // L - a // c >= 0 is c * L + c - 1 - a >= 0.
  for (const Linear::Term& term : ToLinear(goal).terms) {
    const Binary* quotient = As<Binary>(term.atom);
    if (!quotient || quotient->op != BinaryOp::kFloorDiv || term.coefficient != -1) continue;
    const int64_t by = AsInt(quotient->b).value_or(0);
    if (by > 1 && Prove((goal + term.atom) * by + (by - 1) - quotient->a)) return true;
  }
  return false;
}

bool AccessProver::NonNegative(const Expr& e) {
  if (!IsInteger(e->dtype)) return false;
  if (const Binary* clamp = As<Binary>(e)) {
    if (clamp->op == BinaryOp::kMax && (NonNegative(clamp->a) || NonNegative(clamp->b)))
      return true;
    if (clamp->op == BinaryOp::kMin && NonNegative(clamp->a) && NonNegative(clamp->b)) return true;
  }
  const Expr goal = Resolve(e);
  if (!IsExact(goal, ranges_)) return false;
  return Prove(goal) || Prove(Simplify(goal, ranges_));
}

bool AccessProver::Less(const Expr& a, const Expr& b) {
  if (!IntegersAgree(a, b)) return false;
  if (const Binary* clamp = As<Binary>(a)) {
    if (clamp->op == BinaryOp::kMax && Less(clamp->a, b) && Less(clamp->b, b)) return true;
    if (clamp->op == BinaryOp::kMin && (Less(clamp->a, b) || Less(clamp->b, b))) return true;
  }
  if (!IsExact(Resolve(a), ranges_)) return false;
  const Expr goal = Resolve(MakeBinary(BinaryOp::kSub, b, a) - 1);
  return Prove(goal) || Prove(Simplify(goal, ranges_));
}

}  // namespace hackc::ir
