// SPDX-License-Identifier: MIT
#include "compiler/ir/expr_parser.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hackc::ir {
namespace {

ExprScope TestScope() {
  ExprScope scope;
  scope.variable = [](std::string_view name) -> std::optional<DType> {
    if (name == "f" || name == "sum") return DType::kF32;
    if (name == "b") return DType::kBool;
    if (name == "wide") return DType::kI64;
    if (name == "i" || name == "j" || name == "k.0") return DType::kI32;
    return std::nullopt;
  };
  scope.buffer = [](std::string_view name) -> std::optional<DType> {
    if (name == "x") return DType::kBF16;
    if (name == "y") return DType::kF32;
    return std::nullopt;
  };
  scope.symbol = [](std::string_view name) { return name == "seq" || name == "exp"; };
  return scope;
}

class RoundTrip : public testing::TestWithParam<const char*> {};

TEST_P(RoundTrip, PrintedTextIsAFixedPoint) {
  auto e = ParseExpr(GetParam(), TestScope());
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(Print(*e), GetParam());
  auto again = ParseExpr(Print(*e), TestScope());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(Equal(*e, *again));
}

INSTANTIATE_TEST_SUITE_P(
    Expr, RoundTrip,
    testing::Values("(f32(@x[%i, (%j + 1)]) * 0.5)", "-3", "5l", "-9223372036854775808l",
                    "(%i - -3)", "-0.5", "-0.0", "inf", "-inf", "1e+30", "0.5:f64", "-inf:bf16",
                    "true", "false", "seq", "exp", "exp(%f)", "thread.x",
                    "((block.x * 128) + (thread.x // 32))", "(%k.0 % 4)",
                    "select((%i < seq), @y[%i], 0.0)", "@y[%i if ((%i < seq) && (0 <= %i))]",
                    "@y[]", "@y[ if %b]", "shuffle_xor(%f, 16)",
                    "shuffle_index(@y[0], (thread.x & 31))", "min(%i, max(%j, 3))", "pow(%f, 2.0)",
                    "not((%b || (%i == 3)))", "((%i ^ %j) << 2)", "((%i >> 1) != 5)",
                    "(%wide // 7l)", "rsqrt(neg(abs(%f)))", "i64((%i + 1))", "bf16((%sum / 3.0))"));

TEST(ExprParser, AcceptsOnlyWhatTypes) {
  auto error = [](const char* text) {
    return std::string(ParseExpr(text, TestScope()).status().message());
  };
  EXPECT_EQ(error("(%i + 0.5)"), "line 1, column 5: operands of `+` are i32 and f32");
  EXPECT_EQ(error("(%f // %f)"), "line 1, column 5: `//` does not take f32");
  EXPECT_EQ(error("exp(%i)"), "line 1, column 1: `exp` does not take i32");
  EXPECT_EQ(error("select(%i, 1, 2)"), "line 1, column 1: `select` does not take i32");
  EXPECT_EQ(error("select(%b, 1, 2.0)"), "line 1, column 1: operands of `select` are i32 and f32");
  EXPECT_EQ(error("min(%i)"), "line 1, column 1: `min` takes 2 arguments, got 1");
  EXPECT_EQ(error("%q"), "line 1, column 1: %q is not defined here");
  EXPECT_EQ(error("\n  (@z[0] + 1)"), "line 2, column 4: @z is not defined here");
  EXPECT_EQ(error("batch"), "line 1, column 1: `batch` is not a symbol known here");
  EXPECT_EQ(error("sinh(%f)"), "line 1, column 1: unknown function `sinh`");
  EXPECT_EQ(error("@x[%f]"), "line 1, column 4: expected an integer index, got f32");
  EXPECT_EQ(error("@y[0 if %i]"), "line 1, column 9: expected a bool guard, got i32");
  EXPECT_EQ(error("(%i + 1"), "line 1, column 8: expected `)`, got the end of the text");
  EXPECT_EQ(error("%i 1"), "line 1, column 4: expected the end of the text, got `1`");
  EXPECT_EQ(error("99999999999999999999"),
            "line 1, column 1: an integer: 99999999999999999999 does not fit 64 bits");
  EXPECT_EQ(error("0.5:i32"), "line 1, column 5: expected a float type for a float literal");
  EXPECT_EQ(error("(%i $ 1)"),
            "line 1, column 5: expected an operator or `)`, got the character `$`");
}

TEST(ExprParser, DepthIsCapped) {
  std::string deep(100000, '(');
  EXPECT_THAT(std::string(ParseExpr(deep, TestScope()).status().message()),
              testing::HasSubstr("nested more than 128 deep"));
  std::string calls;
  for (int i = 0; i < 127; ++i) calls += "exp(";
  calls += "%f" + std::string(127, ')');
  EXPECT_TRUE(ParseExpr(calls, TestScope()).ok());
  EXPECT_FALSE(ParseExpr("exp(" + calls + ")", TestScope()).ok());
}

TEST(ExprParser, FoldingNeverOverflows) {
  for (const char* text : {"(-9223372036854775808l // -1l)", "neg(-9223372036854775808l)",
                           "(9223372036854775807l + 1l)", "(1 // 0)", "(1 % 0)"}) {
    auto e = ParseExpr(text, TestScope());
    ASSERT_TRUE(e.ok()) << e.status();
    EXPECT_EQ(Print(*e), text);
  }
  EXPECT_EQ(Print(*ParseExpr("(-9223372036854775808l % -1l)", TestScope())), "0l");
}

}  // namespace
}  // namespace hackc::ir
