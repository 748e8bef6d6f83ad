// SPDX-License-Identifier: MIT
#include "tests/ir/index_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "compiler/ir/linear.h"

namespace hackc::ir {

int64_t EvalIndex(const Expr& e, const Values& values) {
  if (auto value = AsInt(e)) return *value;
  if (const Var* var = As<Var>(e)) return values.at(var->name);
  if (const Symbol* symbol = As<Symbol>(e)) return values.at(symbol->name);
  if (const Select* s = As<Select>(e)) {
    return EvalIndex(EvalIndex(s->condition, values) != 0 ? s->a : s->b, values);
  }
  if (const Unary* u = As<Unary>(e)) {
    const int64_t a = EvalIndex(u->a, values);
    return u->op == UnaryOp::kNot ? !a : -a;
  }
  const Binary& n = std::get<Binary>(e->node);
  const int64_t a = EvalIndex(n.a, values), b = EvalIndex(n.b, values);
  const bool divides = n.op == BinaryOp::kFloorDiv || n.op == BinaryOp::kMod;
  if (divides && b == 0) {
    ADD_FAILURE() << Print(e) << " divides by 0";
    return 0;
  }
  const auto floor_divide = [](int64_t x, int64_t y) {
    const int64_t q = x / y;
    return q * y != x && ((x < 0) != (y < 0)) ? q - 1 : q;
  };
  switch (n.op) {
    case BinaryOp::kAdd: return a + b;
    case BinaryOp::kSub: return a - b;
    case BinaryOp::kMul: return a * b;
    case BinaryOp::kFloorDiv: return floor_divide(a, b);
    case BinaryOp::kMod: return a - b * floor_divide(a, b);
    case BinaryOp::kMin: return std::min(a, b);
    case BinaryOp::kMax: return std::max(a, b);
    case BinaryOp::kLt: return a < b;
    case BinaryOp::kLe: return a <= b;
    case BinaryOp::kEq: return a == b;
    case BinaryOp::kNe: return a != b;
    case BinaryOp::kAnd: return a && b;
    case BinaryOp::kOr: return a || b;
    case BinaryOp::kBitAnd: return a & b;
    case BinaryOp::kBitXor: return a ^ b;
    case BinaryOp::kShl: return a << b;
    case BinaryOp::kShr: return a >> b;
    case BinaryOp::kDiv:
    case BinaryOp::kPow: break;
  }
  ADD_FAILURE() << Name(n.op) << " is not index arithmetic";
  return 0;
}

void CheckEverywhere(const Expr& e, const Variables& variables) {
  RangeMap ranges;
  for (const auto& [name, range] : variables) ranges.SetVar(name, range);
  const Expr simple = Simplify(e, ranges);
  const Range bounds = Bounds(e, ranges);
  const int64_t divisor = KnownDivisor(e);
  const bool integer = e->dtype != DType::kBool;
  const Expr sum = integer ? FromLinear(ToLinear(e), e->dtype) : e;
  const Binary* sides = As<Binary>(e);
  if (sides != nullptr && sides->a->dtype == DType::kBool) sides = nullptr;
  const bool less = sides != nullptr && ProveLess(sides->a, sides->b, ranges);
  const bool less_equal = sides != nullptr && ProveLessEqual(sides->a, sides->b, ranges);
  const bool positive = integer && ProveNonNegative(e, ranges);
  Values values;
  std::function<void(size_t)> visit = [&](size_t i) {
    if (::testing::Test::HasFailure()) return;
    if (i < variables.size()) {
      for (int64_t v = variables[i].second.min; v <= variables[i].second.max; ++v) {
        values[variables[i].first] = v;
        visit(i + 1);
      }
      return;
    }
    const int64_t expected = EvalIndex(e, values);
    ASSERT_EQ(EvalIndex(simple, values), expected) << Print(e) << " became " << Print(simple);
    ASSERT_EQ(EvalIndex(sum, values), expected) << Print(e) << " as a sum is " << Print(sum);
    ASSERT_LE(bounds.min, expected) << Print(e);
    ASSERT_GE(bounds.max, expected) << Print(e);
    ASSERT_TRUE(divisor == 0 ? expected == 0 : expected % divisor == 0)
        << Print(e) << " = " << expected << " by " << divisor;
    if (positive) {
      ASSERT_GE(expected, 0) << Print(e);
    }
    if (less) {
      ASSERT_LT(EvalIndex(sides->a, values), EvalIndex(sides->b, values)) << Print(e);
    }
    if (less_equal) {
      ASSERT_LE(EvalIndex(sides->a, values), EvalIndex(sides->b, values)) << Print(e);
    }
  };
  visit(0);
  const Expr again = Simplify(simple, ranges);
  EXPECT_TRUE(Equal(again, simple))
      << Print(e) << " -> " << Print(simple) << " -> " << Print(again);
}

}  // namespace hackc::ir
