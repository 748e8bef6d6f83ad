// SPDX-License-Identifier: MIT
// Every rule of the simplifier: what it makes of an example, and its form over all small integers:
// negative numerators, offsets and coefficients too, where C's division would differ. Then every
// integer operation over all small ranges: bounds, divisors and proofs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "compiler/ir/bounds_proof.h"
#include "compiler/ir/expr_parser.h"
#include "tests/ir/index_check.h"

namespace hackc::ir {
namespace {

const Expr kX = Axis("x"), kY = Axis("y");

void Check(const Expr& e, const Variables& variables) {
  if (!testing::Test::HasFailure()) CheckEverywhere(e, variables);
}

// Calls `body(value)` for each integer from `first` to `last`.
template <typename Body>
void Each(int64_t first, int64_t last, Body&& body) {
  for (int64_t value = first; value <= last; ++value) body(value);
}

// All ranges of at most `width` that lie in first..last.
template <typename Body>
void EachRange(int64_t first, int64_t last, int64_t width, Body&& body) {
  Each(first, last, [&](int64_t min) {
    Each(min, std::min(last, min + width), [&](int64_t max) { body(Range{min, max}); });
  });
}

const Variables kWide = {{"x", {-30, 30}}};

// x + c with y, over all small ranges.
void Compare(BinaryOp op) {
  EachRange(-3, 3, 2, [&](Range x) {
    EachRange(-3, 3, 2, [&](Range y) {
      Each(-2, 2, [&](int64_t c) {
        Check(MakeBinary(op, kX + c, kY), {{"x", x}, {"y", y}});
        Check(MakeBinary(op, kX + kY, kY + c), {{"x", x}, {"y", y}});
      });
    });
  });
}

// `example`, where kExample says what is known, becomes `becomes`.
struct Row {
  const char* example;
  const char* becomes;
  std::function<void()> everywhere;
};
const Variables kExample = {{"x", {-30, 30}}, {"y", {0, 3}}, {"z", {-7, 7}}, {"n", {4, 9}}};

const std::vector<Row>& Rows() {
  static const auto* rows = new std::vector<Row>{
      {"select((%x < 1), %y, %y)", "%y",
       [] {
         Each(-2, 2,
              [&](int64_t c) { Check(MakeSelect(Lt(kX, IntLit(c)), kX + c, kX + c), kWide); });
       }},
      {"((%x * 2) + ((%y - %x) * 2))", "(%y * 2)",
       [] {
         const Variables both = {{"x", {-4, 4}}, {"y", {-3, 3}}};
         Each(-3, 3, [&](int64_t a) {
           Each(-3, 3, [&](int64_t b) {
             Check((kX * a + kY) * b - kX, both);
             Check((kX + a) * (kY + b) - kX * kY, both);
             Check(MakeUnary(UnaryOp::kNeg, kX * a - kY) + kX * b, both);
           });
         });
       }},
      {"(((%x // 4) * 8) + ((%x % 4) * 2))", "(%x * 2)",
       [] {
         Each(1, 6, [&](int64_t n) {
           Each(-3, 3, [&](int64_t k) {
             Each(-3, 3, [&](int64_t offset) {
               const Expr x = kX + offset;
               Check(FloorDiv(x, n) * (n * k) + Mod(x, n) * k + kX, kWide);
               Check(FloorDiv(x, n) * (n * k + 1) + Mod(x, n) * k, kWide);  // almost
             });
           });
         });
       }},
      {"(%y // %n)", "0",
       [] {
         EachRange(-3, 5, 3, [&](Range x) {
           EachRange(-5, 7, 3, [&](Range y) {
             if (y.min <= 0 && y.max >= 0) return;
             Check(FloorDiv(kX, kY), {{"x", x}, {"y", y}});
           });
         });
       }},
      {"(((%x * 4) + %z) // 4)", "(%x + (%z // 4))",
       [] {
         Each(1, 6, [&](int64_t n) {
           Each(-2, 2, [&](int64_t k) {
             Each(-7, 7, [&](int64_t offset) {
               Check(FloorDiv(kX * (n * k) + kY + offset, n), {{"x", {-3, 3}}, {"y", {-7, 7}}});
             });
           });
         });
       }},
      {"((%y + 8) // 6)", "1",
       [] {
         Each(1, 6, [&](int64_t n) {
           EachRange(-13, 13, 6, [&](Range x) { Check(FloorDiv(kX, n), {{"x", x}}); });
         });
       }},
      {"(((%x * 4) + %y) // 8)", "(%x // 2)",
       [] {
         Each(2, 4, [&](int64_t g) {
           Each(2, 4, [&](int64_t d) {
             Each(-3, 3, [&](int64_t offset) {
               Each(0, g, [&](int64_t widest) {  // r too wide by one, too
                 Check(FloorDiv(kX * g + kY + offset, g * d), {{"x", {-9, 9}}, {"y", {0, widest}}});
               });
             });
           });
         });
       }},
      {"(((%x // 3) + 1) // 4)", "((%x + 3) // 12)",
       [] {
         Each(2, 4, [&](int64_t p) {
           Each(2, 4, [&](int64_t d) {
             Each(-5, 5, [&](int64_t k) { Check(FloorDiv(FloorDiv(kX, p) + k, d), kWide); });
           });
         });
       }},
      {"(%y % %n)", "%y",
       [] {
         EachRange(-3, 5, 3, [&](Range x) {
           EachRange(-5, 7, 3, [&](Range y) {
             if (y.min <= 0 && y.max >= 0) return;
             Check(Mod(kX, kY), {{"x", x}, {"y", y}});
           });
         });
       }},
      {"(((%x * 4) + %z) % 4)", "(%z % 4)",
       [] {
         Each(1, 6, [&](int64_t n) {
           Each(-7, 7, [&](int64_t c) {
             Each(-7, 7, [&](int64_t offset) {
               Check(Mod(kX * c + kY + offset, n), {{"x", {-3, 3}}, {"y", {-4, 4}}});
             });
           });
         });
       }},
      {"((%x % 8) % 4)", "(%x % 4)",
       [] {
         Each(2, 4, [&](int64_t d) {
           Each(1, 4, [&](int64_t n) {
             Each(-3, 3, [&](int64_t c) {
               Check(Mod(Mod(kX, d * n) * c + 1, d), kWide);
               Check(Mod(Mod(kX, d * n + 1) * c, d), kWide);  // no multiple
             });
           });
         });
       }},
      {"((%y + 8) % 6)", "(%y + 2)",
       [] {
         Each(1, 6, [&](int64_t n) {
           EachRange(-13, 13, 6, [&](Range x) { Check(Mod(kX, n), {{"x", x}}); });
         });
       }},
      {"(((%x * 4) + %y) % 8)", "(((%x % 2) * 4) + %y)",
       [] {
         Each(2, 4, [&](int64_t g) {
           Each(2, 4, [&](int64_t d) {
             Each(-3, 3, [&](int64_t offset) {
               Each(0, g, [&](int64_t widest) {
                 Check(Mod(kX * g + kY + offset, g * d), {{"x", {-9, 9}}, {"y", {0, widest}}});
               });
             });
           });
         });
       }},
      {"((%x < 1) && (%x < 1))", "(%x < 1)",
       [] {
         Each(-2, 2, [&](int64_t c) {
           const Expr condition = Lt(kX, IntLit(c)), other = Lt(kX, IntLit(c + 1));
           for (BinaryOp op : {BinaryOp::kAnd, BinaryOp::kOr, BinaryOp::kEq, BinaryOp::kNe}) {
             Check(MakeBinary(op, condition, condition), kWide);
             Check(MakeBinary(op, condition, other), kWide);
           }
         });
       }},
      {"((%y < 4) == (%y < 4))", "true", [] {}},
      {"min(%y, %n)", "%y", [] { Compare(BinaryOp::kMin); }},
      {"max(%y, %n)", "%n", [] { Compare(BinaryOp::kMax); }},
      {"(%y < %n)", "true", [] { Compare(BinaryOp::kLt); }},
      {"(%n < %y)", "false", [] {}},
      {"(%y <= 3)", "true", [] { Compare(BinaryOp::kLe); }},
      {"(%n <= %y)", "false", [] {}},
      {"((%x + %y) == (%y + %x))", "true", [] { Compare(BinaryOp::kEq); }},
      {"(%y != %n)", "true", [] { Compare(BinaryOp::kNe); }},
  };
  return *rows;
}

TEST(SimplifyRules, EachHoldsOverAllSmallIntegers) {
  RangeMap ranges;
  for (const auto& [name, range] : kExample) ranges.SetVar(name, range);
  for (const Row& row : Rows()) {
    SCOPED_TRACE(row.example);
    const auto example =
        ParseExpr(row.example, {.variable = [](auto) { return std::optional(DType::kI32); }});
    ASSERT_TRUE(example.ok()) << example.status();
    EXPECT_EQ(Print(Simplify(*example, ranges)), row.becomes);
    row.everywhere();
    if (HasFailure()) return;
  }
}

TEST(SimplifyRules, BoundsDivisorsAndProofsOfEveryOperation) {
  for (int op = 0; op <= static_cast<int>(BinaryOp::kShr); ++op) {
    const auto kind = static_cast<BinaryOp>(op);
    SCOPED_TRACE(Name(kind));
    if (kind == BinaryOp::kDiv || kind == BinaryOp::kPow) continue;  // of floats
    const bool shifts = kind == BinaryOp::kShl || kind == BinaryOp::kShr;
    const bool divides = kind == BinaryOp::kFloorDiv || kind == BinaryOp::kMod;
    const bool logic = kind == BinaryOp::kAnd || kind == BinaryOp::kOr;
    EachRange(-3, 4, 4, [&](Range x) {
      EachRange(-3, 4, 4, [&](Range y) {
        if (HasFailure()) return;
        if ((shifts && y.min < 0) || (divides && y.min <= 0 && y.max >= 0)) return;
        const Variables variables = {{"x", x}, {"y", y}};
        if (logic) {
          return CheckEverywhere(MakeBinary(kind, Lt(kX, IntLit(1)), Lt(kY, IntLit(2))), variables);
        }
        CheckEverywhere(MakeBinary(kind, kX, kY), variables);
        CheckEverywhere(MakeBinary(kind, kX * 6, kY), variables);
        if (!divides && !shifts) CheckEverywhere(MakeBinary(kind, kX, kY * 6), variables);
      });
    });
  }
}

// Where numbers end: a sum that leaves 64 bits stays as it is, and proves nothing.
TEST(SimplifyRules, NothingIsProvedBeyondTheLastInteger) {
  RangeMap ranges;
  ranges.SetVar("x", {0, 100});
  const Expr wide = MakeCast(DType::kI64, kX);
  const Expr smallest = IntLit(INT64_MIN, DType::kI64);
  for (const Expr& e : {wide + smallest, smallest - wide, wide * smallest,
                        wide * INT64_MAX + INT64_MIN, wide * INT64_MAX * INT64_MAX - 1}) {
    EXPECT_FALSE(ProveNonNegative(e, ranges)) << Print(e);
    EXPECT_FALSE(ProveNonNegative(Simplify(e, ranges), ranges)) << Print(Simplify(e, ranges));
    EXPECT_FALSE(IsExact(e, ranges)) << Print(e);
  }
  EXPECT_TRUE(Divides(smallest, 2));
  EXPECT_FALSE(Divides(smallest, 3));
  EXPECT_EQ(AsInt(Mod(IntLit(7, DType::kI64), smallest)), INT64_MIN + 7);
  EXPECT_EQ(AsInt(Mod(smallest + 1, IntLit(7, DType::kI64))), 0 + ((INT64_MIN + 1) % 7 + 7) % 7);
  // 32 bits are what kernels compute in.
  ranges.SetVar("y", {0, 1 << 20});
  EXPECT_TRUE(IsExact(kX * (1 << 20) + kY, ranges));
  EXPECT_FALSE(IsExact(kY * (1 << 20), ranges));
  EXPECT_FALSE(IsExact(Mod(kY * (1 << 20), 7), ranges));
  EXPECT_TRUE(IsExact(kY * (1 << 20) - kY * (1 << 20) + kX, ranges));
}

}  // namespace
}  // namespace hackc::ir
