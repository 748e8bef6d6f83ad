// SPDX-License-Identifier: MIT
#include "client/runtime/dim_expr.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"
#include "tests/client/formula_builder.h"
#include "tests/client/status_matcher.h"

namespace hackc::client {
namespace {

using E = v1::DimExpr;
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

int64_t Value(const E& expr, const SymbolValues& symbols = {}) {
  auto value = Evaluate(expr, symbols);
  EXPECT_THAT(value, Ok());
  return value.ok() ? *value : -999;
}

TEST(DimExpr, EvaluatesEveryOperator) {
  SymbolValues symbols = {{"seq", 513}};
  EXPECT_EQ(Value(Const(7)), 7);
  EXPECT_EQ(Value(Sym("seq"), symbols), 513);
  EXPECT_EQ(Value(Op(E::ADD, Sym("seq"), Const(2)), symbols), 515);
  EXPECT_EQ(Value(Op(E::MUL, Sym("seq"), Const(3)), symbols), 1539);
  EXPECT_EQ(Value(Op(E::FLOOR_DIV, Sym("seq"), Const(64)), symbols), 8);
  EXPECT_EQ(Value(Op(E::CEIL_DIV, Sym("seq"), Const(64)), symbols), 9);
  EXPECT_EQ(Value(Op(E::CEIL_DIV, Const(512), Const(64))), 8);
  EXPECT_EQ(Value(Op(E::MOD, Sym("seq"), Const(64)), symbols), 1);
  EXPECT_EQ(Value(Op(E::MIN, Sym("seq"), Const(64)), symbols), 64);
  EXPECT_EQ(Value(Op(E::MAX, Sym("seq"), Const(64)), symbols), 513);
}

// Division agrees with a == b * floor(a / b) + a mod b and 0 <= |a mod b| < |b| for every sign.
TEST(DimExpr, DivisionLawsHoldForEverySign) {
  for (int64_t a = -9; a <= 9; ++a) {
    for (int64_t b = -4; b <= 4; ++b) {
      if (b == 0) continue;
      int64_t floor = Value(Op(E::FLOOR_DIV, Const(a), Const(b)));
      int64_t ceil = Value(Op(E::CEIL_DIV, Const(a), Const(b)));
      int64_t mod = Value(Op(E::MOD, Const(a), Const(b)));
      EXPECT_EQ(b * floor + mod, a) << a << " / " << b;
      EXPECT_TRUE(mod == 0 || (mod < 0) == (b < 0)) << a << " % " << b;
      EXPECT_LT(std::abs(mod), std::abs(b));
      EXPECT_EQ(ceil, a % b == 0 ? floor : floor + 1) << a << " / " << b;
    }
  }
}

TEST(DimExpr, OverflowIsAnError) {
  for (const E& expr :
       {Op(E::ADD, Const(kMax), Const(1)), Op(E::MUL, Const(kMax), Const(2)),
        Op(E::MUL, Const(kMin), Const(-1)), Op(E::FLOOR_DIV, Const(kMin), Const(-1)),
        Op(E::MOD, Const(kMin), Const(-1))}) {
    EXPECT_THAT(Evaluate(expr, {}), Fails(absl::StatusCode::kOutOfRange, "overflows 64 bits"));
  }
  EXPECT_EQ(Value(Op(E::CEIL_DIV, Const(kMax), Const(2))), kMax / 2 + 1);
  EXPECT_EQ(Value(Op(E::FLOOR_DIV, Const(kMin), Const(3))), kMin / 3 - 1);
}

TEST(DimExpr, RefusesWhatHasNoValue) {
  using absl::StatusCode;
  EXPECT_THAT(Evaluate(Op(E::MOD, Const(1), Const(0)), {}),
              Fails(StatusCode::kInvalidArgument, "divides by zero: 1 % 0"));
  EXPECT_THAT(Evaluate(Sym("past"), {{"seq", 1}}),
              Fails(StatusCode::kInvalidArgument, "'past', which has no value"));
  E lone = Op(E::ADD, Const(1), Const(2));
  lone.mutable_args()->RemoveLast();
  EXPECT_THAT(Evaluate(lone, {}), Fails(StatusCode::kInvalidArgument, "ADD has 1 operands"));
  E unknown = Op(E::ADD, Const(1), Const(2));
  unknown.set_op(static_cast<E::Op>(77));
  EXPECT_THAT(Evaluate(unknown, {}), Fails(StatusCode::kInvalidArgument, "unknown operator 77"));
  E deep = Const(1);
  for (int i = 0; i < 200; ++i) deep = Op(E::ADD, deep, Const(1));
  EXPECT_THAT(Evaluate(deep, {}), Fails(StatusCode::kInvalidArgument, "nested deeper"));
  EXPECT_FALSE(FormulaText(deep).empty());
}

TEST(DimExpr, TextKeepsTheMeaning) {
  E sum = Op(E::ADD, Sym("past"), Sym("seq"));
  EXPECT_EQ(FormulaText(Op(E::CEIL_DIV, sum, Const(64))), "ceil((past + seq) / 64)");
  EXPECT_EQ(FormulaText(Op(E::MUL, sum, Const(4))), "(past + seq) * 4");
  EXPECT_EQ(FormulaText(Op(E::ADD, Op(E::MUL, Const(2), Sym("seq")), Const(4))), "2 * seq + 4");
  EXPECT_EQ(FormulaText(Op(E::MUL, Const(2), Op(E::MOD, Sym("seq"), Const(4)))), "2 * (seq % 4)");
  EXPECT_EQ(FormulaText(Op(E::MIN, Sym("seq"), Const(4))), "min(seq, 4)");
  EXPECT_EQ(FormulaText(Op(E::FLOOR_DIV, Sym("seq"), Op(E::MUL, Const(2), Const(3)))),
            "floor(seq / (2 * 3))");
  EXPECT_EQ(FormulaText(Op(E::FLOOR_DIV, Op(E::ADD, sum, Const(63)), Const(64))),
            "ceil((past + seq) / 64)");
  EXPECT_EQ(FormulaText(Op(E::FLOOR_DIV, Op(E::ADD, sum, Const(62)), Const(64))),
            "floor((past + seq + 62) / 64)");
  EXPECT_TRUE(IsSymbolic(sum));
  EXPECT_FALSE(IsSymbolic(Op(E::ADD, Const(1), Const(2))));
}

}  // namespace
}  // namespace hackc::client
