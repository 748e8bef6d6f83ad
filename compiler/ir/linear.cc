// SPDX-License-Identifier: MIT
#include "compiler/ir/linear.h"

#include <utility>

namespace hackc::ir {
namespace {

// A product of two sums is multiplied out up to this many terms; beyond, it stays one atom.
constexpr size_t kMaxProductTerms = 6;

// Every number in a sum has a negative: the one that has none counts as an overflow.
bool Fits(int64_t value) { return value != INT64_MIN; }
// In place; false where the result does not fit.
bool Add(int64_t& a, int64_t b) { return !__builtin_add_overflow(a, b, &a) && Fits(a); }
bool Multiply(int64_t& a, int64_t b) { return !__builtin_mul_overflow(a, b, &a) && Fits(a); }

Linear Constant(int64_t value) { return Linear{{}, value}; }
Linear Atom(const Expr& e) { return Linear{{{e, 1}}, 0}; }

// With the factors in the order that makes a * b and b * a one atom.
Expr ProductOfAtoms(const Expr& a, const Expr& b) {
  std::vector<std::pair<std::string, Expr>> keyed;
  for (const Expr& factor : Flatten(a * b, BinaryOp::kMul))
    keyed.emplace_back(Print(factor), factor);
  absl::c_stable_sort(keyed, [](const auto& x, const auto& y) { return x.first < y.first; });
  Expr product = keyed[0].second;
  for (size_t i = 1; i < keyed.size(); ++i) product = product * keyed[i].second;
  return product;
}

std::optional<Linear> Product(const Linear& a, const Linear& b) {
  if (a.terms.empty()) return Scaled(b, a.constant);
  if (b.terms.empty()) return Scaled(a, b.constant);
  if (a.terms.size() * b.terms.size() > kMaxProductTerms) return std::nullopt;
  std::optional<Linear> result = Constant(0);
  auto add = [&](const std::optional<Linear>& part) {
    result = result && part ? Sum(*result, *part) : std::nullopt;
  };
  for (const Linear::Term& x : a.terms) {
    for (const Linear::Term& y : b.terms) {
      auto scaled = Scaled(Atom(ProductOfAtoms(x.atom, y.atom)), x.coefficient);
      add(scaled ? Scaled(*scaled, y.coefficient) : std::nullopt);
    }
    add(Scaled(Linear{{x}, 0}, b.constant));
  }
  add(Scaled(Linear{b.terms, 0}, a.constant));
  add(Scaled(Constant(a.constant), b.constant));
  return result;
}

}  // namespace

std::vector<Expr> Flatten(const Expr& e, BinaryOp op) {
  const Binary* nest = As<Binary>(e);
  if (!nest || nest->op != op) return {e};
  std::vector<Expr> operands = Flatten(nest->a, op);
  absl::c_copy(Flatten(nest->b, op), std::back_inserter(operands));
  return operands;
}

std::optional<Linear> Sum(const Linear& a, const Linear& b) {
  Linear result = a;
  if (!Add(result.constant, b.constant)) return std::nullopt;
  for (const Linear::Term& term : b.terms) {
    auto same = absl::c_find_if(
        result.terms, [&](const Linear::Term& other) { return Equal(other.atom, term.atom); });
    if (same == result.terms.end()) {
      result.terms.push_back(term);
      continue;
    }
    if (!Add(same->coefficient, term.coefficient)) return std::nullopt;
    if (same->coefficient == 0) result.terms.erase(same);
  }
  return result;
}

std::optional<Linear> Scaled(const Linear& a, int64_t factor) {
  if (factor == 0) return Constant(0);
  Linear result = a;
  bool fits = Multiply(result.constant, factor);
  for (Linear::Term& term : result.terms) fits = fits && Multiply(term.coefficient, factor);
  return fits ? std::optional(result) : std::nullopt;
}

Linear ToLinear(const Expr& e) {
  if (auto value = AsInt(e); value && Fits(*value)) return Constant(*value);
  std::optional<Linear> result;
  if (const Binary* binary = As<Binary>(e)) {
    if (binary->op == BinaryOp::kAdd) result = Sum(ToLinear(binary->a), ToLinear(binary->b));
    if (binary->op == BinaryOp::kSub) {
      auto negated = Scaled(ToLinear(binary->b), -1);
      if (negated) result = Sum(ToLinear(binary->a), *negated);
    }
    if (binary->op == BinaryOp::kMul) result = Product(ToLinear(binary->a), ToLinear(binary->b));
  }
  if (const Unary* unary = As<Unary>(e); unary && unary->op == UnaryOp::kNeg) {
    result = Scaled(ToLinear(unary->a), -1);
  }
  return result ? *result : Atom(e);
}

Expr FromLinear(const Linear& linear, DType dtype) {
  Expr result;
  for (const Linear::Term& term : linear.terms) {  // additions first: x - y rather than -y + x
    if (term.coefficient < 0) continue;
    Expr part = term.atom * term.coefficient;
    result = result ? result + part : part;
  }
  int64_t constant = linear.constant;
  if (!result) result = IntLit(std::exchange(constant, 0), dtype);
  for (const Linear::Term& term : linear.terms) {
    if (term.coefficient < 0) result = result - term.atom * -term.coefficient;
  }
  return constant < 0 ? result - -constant : result + constant;
}

std::optional<Linear> Replaced(const Linear& sum, const Expr& atom, const Expr& value) {
  Linear rest = sum;
  const auto term =
      absl::c_find_if(rest.terms, [&](const Linear::Term& t) { return t.atom == atom; });
  const std::optional<Linear> scaled = Scaled(ToLinear(value), term->coefficient);
  rest.terms.erase(term);
  return scaled ? Sum(rest, *scaled) : std::nullopt;
}

bool SameSum(const Expr& a, const Expr& b) {
  const Linear difference = ToLinear(MakeBinary(BinaryOp::kSub, a, b));
  return difference.terms.empty() && difference.constant == 0;
}

}  // namespace hackc::ir
