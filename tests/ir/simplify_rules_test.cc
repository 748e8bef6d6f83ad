// SPDX-License-Identifier: MIT
// Every rule of the simplifier, by id, over all small integers of its form: negative numerators,
// offsets and coefficients too, where C's division would differ. A rule without a row fails, and so
// does a row that never uses its rule. Then every integer operation over all small ranges: bounds,
// divisors and proofs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "compiler/ir/bounds_proof.h"
#include "tests/ir/index_check.h"

namespace hackc::ir {
namespace {

const Expr kX = Axis("x"), kY = Axis("y");

using Check = std::function<void(const Expr&, const Variables&)>;

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

const std::map<SimplifyRule, std::function<void(const Check&)>>& Rows() {
  static const auto* rows = new std::map<SimplifyRule, std::function<void(const Check&)>>{
      {SimplifyRule::kSelectSame,
       [](const Check& check) {
         Each(-2, 2,
              [&](int64_t c) { check(MakeSelect(Lt(kX, IntLit(c)), kX + c, kX + c), kWide); });
       }},
      {SimplifyRule::kSum,
       [](const Check& check) {
         const Variables both = {{"x", {-4, 4}}, {"y", {-3, 3}}};
         Each(-3, 3, [&](int64_t a) {
           Each(-3, 3, [&](int64_t b) {
             check((kX * a + kY) * b - kX, both);
             check((kX + a) * (kY + b) - kX * kY, both);
             check(MakeUnary(UnaryOp::kNeg, kX * a - kY) + kX * b, both);
           });
         });
       }},
      {SimplifyRule::kRecombine,
       [](const Check& check) {
         Each(1, 6, [&](int64_t n) {
           Each(-3, 3, [&](int64_t k) {
             Each(-3, 3, [&](int64_t offset) {
               const Expr x = kX + offset;
               check(FloorDiv(x, n) * (n * k) + Mod(x, n) * k + kX, kWide);
               check(FloorDiv(x, n) * (n * k + 1) + Mod(x, n) * k, kWide);  // almost
             });
           });
         });
       }},
      {SimplifyRule::kDivideSmall,
       [](const Check& check) {
         EachRange(-3, 5, 3, [&](Range x) {
           EachRange(-5, 7, 3, [&](Range y) {
             if (y.min <= 0 && y.max >= 0) return;
             check(FloorDiv(kX, kY), {{"x", x}, {"y", y}});
           });
         });
       }},
      {SimplifyRule::kDivideSplit,
       [](const Check& check) {
         Each(1, 6, [&](int64_t n) {
           Each(-2, 2, [&](int64_t k) {
             Each(-7, 7, [&](int64_t offset) {
               check(FloorDiv(kX * (n * k) + kY + offset, n), {{"x", {-3, 3}}, {"y", {-7, 7}}});
             });
           });
         });
       }},
      {SimplifyRule::kDivideConstant,
       [](const Check& check) {
         Each(1, 6, [&](int64_t n) {
           EachRange(-13, 13, 6, [&](Range x) { check(FloorDiv(kX, n), {{"x", x}}); });
         });
       }},
      {SimplifyRule::kDivideTile,
       [](const Check& check) {
         Each(2, 4, [&](int64_t g) {
           Each(2, 4, [&](int64_t d) {
             Each(-3, 3, [&](int64_t offset) {
               Each(0, g, [&](int64_t widest) {  // r too wide by one, too
                 check(FloorDiv(kX * g + kY + offset, g * d), {{"x", {-9, 9}}, {"y", {0, widest}}});
               });
             });
           });
         });
       }},
      {SimplifyRule::kDivideNested,
       [](const Check& check) {
         Each(2, 4, [&](int64_t p) {
           Each(2, 4, [&](int64_t d) {
             Each(-5, 5, [&](int64_t k) { check(FloorDiv(FloorDiv(kX, p) + k, d), kWide); });
           });
         });
       }},
      {SimplifyRule::kModuloSmall,
       [](const Check& check) {
         EachRange(-3, 5, 3, [&](Range x) {
           EachRange(-5, 7, 3, [&](Range y) {
             if (y.min <= 0 && y.max >= 0) return;
             check(Mod(kX, kY), {{"x", x}, {"y", y}});
           });
         });
       }},
      {SimplifyRule::kModuloSplit,
       [](const Check& check) {
         Each(1, 6, [&](int64_t n) {
           Each(-7, 7, [&](int64_t c) {
             Each(-7, 7, [&](int64_t offset) {
               check(Mod(kX * c + kY + offset, n), {{"x", {-3, 3}}, {"y", {-4, 4}}});
             });
           });
         });
       }},
      {SimplifyRule::kModuloNested,
       [](const Check& check) {
         Each(2, 4, [&](int64_t d) {
           Each(1, 4, [&](int64_t n) {
             Each(-3, 3, [&](int64_t c) {
               check(Mod(Mod(kX, d * n) * c + 1, d), kWide);
               check(Mod(Mod(kX, d * n + 1) * c, d), kWide);  // no multiple
             });
           });
         });
       }},
      {SimplifyRule::kModuloOneTurn,
       [](const Check& check) {
         Each(1, 6, [&](int64_t n) {
           EachRange(-13, 13, 6, [&](Range x) { check(Mod(kX, n), {{"x", x}}); });
         });
       }},
      {SimplifyRule::kModuloTile,
       [](const Check& check) {
         Each(2, 4, [&](int64_t g) {
           Each(2, 4, [&](int64_t d) {
             Each(-3, 3, [&](int64_t offset) {
               Each(0, g, [&](int64_t widest) {
                 check(Mod(kX * g + kY + offset, g * d), {{"x", {-9, 9}}, {"y", {0, widest}}});
               });
             });
           });
         });
       }},
      {SimplifyRule::kSameCondition,
       [](const Check& check) {
         Each(-2, 2, [&](int64_t c) {
           const Expr condition = Lt(kX, IntLit(c)), other = Lt(kX, IntLit(c + 1));
           for (BinaryOp op : {BinaryOp::kAnd, BinaryOp::kOr, BinaryOp::kEq, BinaryOp::kNe}) {
             check(MakeBinary(op, condition, condition), kWide);
             check(MakeBinary(op, condition, other), kWide);
           }
         });
       }},
  };
  return *rows;
}

// The rules that compare two sides: x + c with y, over all small ranges.
const std::map<SimplifyRule, std::vector<BinaryOp>> kComparisons = {
    {SimplifyRule::kMin, {BinaryOp::kMin}},
    {SimplifyRule::kMax, {BinaryOp::kMax}},
    {SimplifyRule::kLess, {BinaryOp::kLt}},
    {SimplifyRule::kLessEqual, {BinaryOp::kLe}},
    {SimplifyRule::kEqual, {BinaryOp::kEq, BinaryOp::kNe}},
};

TEST(SimplifyRules, EachHoldsOverAllSmallIntegers) {
  for (int id = 0; id < static_cast<int>(SimplifyRule::kCount); ++id) {
    SCOPED_TRACE("rule " + std::to_string(id));
    const auto rule = static_cast<SimplifyRule>(id);
    std::set<SimplifyRule> used;
    const Check check = [&](const Expr& e, const Variables& variables) {
      if (!HasFailure()) CheckEverywhere(e, variables, &used);
    };
    if (const auto row = Rows().find(rule); row != Rows().end()) row->second(check);
    if (const auto row = kComparisons.find(rule); row != kComparisons.end()) {
      for (BinaryOp op : row->second) {
        EachRange(-3, 3, 2, [&](Range x) {
          EachRange(-3, 3, 2, [&](Range y) {
            Each(-2, 2, [&](int64_t c) {
              check(MakeBinary(op, kX + c, kY), {{"x", x}, {"y", y}});
              check(MakeBinary(op, kX + kY, kY + c), {{"x", x}, {"y", y}});
            });
          });
        });
      }
    }
    EXPECT_TRUE(used.contains(rule)) << "no row of this test uses it";
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
