// SPDX-License-Identifier: MIT
#include "compiler/ir/simplify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "compiler/ir/bounds_proof.h"
#include "compiler/ir/expr_parser.h"
#include "tests/ir/index_check.h"

namespace hackc::ir {
namespace {

const Expr kX = Axis("x"), kY = Axis("y");

TEST(Simplify, DivideAndModuloOfAffineFormsExhaustive) {
  for (int64_t c : {-6, -4, -1, 1, 2, 3, 4, 6, 8}) {
    for (int64_t d : {-3, 1, 2, 5}) {
      for (int64_t k : {-7, -1, 0, 1, 3, 4, 9}) {
        for (int64_t n : {1, 2, 3, 4, 6, 8, 12}) {
          Expr sum = kX * c + kY * d + k;
          for (Range y : {Range{0, 3}, Range{-3, 2}}) {
            CheckEverywhere(FloorDiv(sum, n), {{"x", {-5, 7}}, {"y", y}});
            CheckEverywhere(Mod(sum, n), {{"x", {-5, 7}}, {"y", y}});
          }
        }
      }
    }
  }
}

TEST(Simplify, NestedDivideAndModuloExhaustive) {
  for (int64_t p : {2, 3, 4, 6}) {
    for (int64_t q : {2, 3, 4, 8, 12}) {
      for (int64_t k : {-5, 0, 1, 7}) {
        std::vector<std::pair<std::string, Range>> vars = {{"x", {-30, 30}}};
        CheckEverywhere(FloorDiv(FloorDiv(kX, p) + k, q), vars);
        CheckEverywhere(Mod(Mod(kX, p * q) + k, q), vars);
        CheckEverywhere(Mod(Mod(kX, q) * 3 + k, p), vars);
        CheckEverywhere(FloorDiv(Mod(kX, p * q) + k, q), vars);
        CheckEverywhere(FloorDiv(kX, p) * p + Mod(kX, p) + k, vars);
        CheckEverywhere(FloorDiv(kX, p) * (p * k) + Mod(kX, p) * k, vars);
        CheckEverywhere(Mod(kX * p, p * q) + k, vars);  // the scale must survive
      }
    }
  }
}

TEST(Simplify, RandomExpressionsKeepTheirMeaning) {
  std::mt19937 random(20261129);
  auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::function<Expr(int)> make = [&](int depth) -> Expr {
    if (depth == 0 || pick(6) == 0) {
      int kind = pick(3);
      return kind == 0 ? kX : kind == 1 ? kY : IntLit(pick(19) - 6);
    }
    Expr a = make(depth - 1), b = make(depth - 1);
    switch (pick(10)) {
      case 0: return a + b;
      case 1: return a - b;
      case 2: return a * (pick(9) - 2);
      case 3: return a * b;
      case 4: return FloorDiv(a, 1 + pick(8));
      case 5: return Mod(a, 1 + pick(8));
      case 6: return Min(a, b);
      case 7: return Max(a, b);
      case 8: return MakeSelect(pick(2) ? Lt(a, b) : Le(a, b), b, a);
      default:
        return MakeSelect(MakeBinary(pick(2) ? BinaryOp::kEq : BinaryOp::kNe, a, b), a,
                          make(depth - 1));
    }
  };
  for (int i = 0; i < 4000 && !HasFailure(); ++i) {
    CheckEverywhere(make(1 + pick(4)), {{"x", {0, 9}}, {"y", {-2, 6}}});
  }
}

TEST(Simplify, BitOperationsStayInBounds) {
  for (BinaryOp op : {BinaryOp::kBitAnd, BinaryOp::kBitXor}) {
    CheckEverywhere(MakeBinary(op, kX, IntLit(5)), {{"x", {0, 40}}});
    CheckEverywhere(MakeBinary(op, kX, kY), {{"x", {0, 20}}, {"y", {0, 9}}});
  }
  CheckEverywhere(MakeBinary(BinaryOp::kShl, kX, IntLit(3)), {{"x", {-4, 20}}});
  CheckEverywhere(MakeBinary(BinaryOp::kShr, kX, IntLit(2)), {{"x", {-9, 20}}});
}

TEST(Simplify, ShapesThatLoweringMeets) {
  RangeMap ranges({{"seq", 1, 2048}, {"past", 0, 4096}});
  Expr seq = MakeSymbol("seq"), past = MakeSymbol("past");
  ranges.SetAxis("s", seq);
  ranges.SetAxis("t", past + Axis("s") + 1);
  ranges.SetAxis("i", IntLit(64));
  auto text = [&](const Expr& e) { return Print(Simplify(e, ranges)); };
  EXPECT_EQ(text(FloorDiv(Axis("m") * 64 + Axis("i"), 64)), "%m");
  EXPECT_EQ(text(Mod(Axis("m") * 64 + Axis("i"), 64)), "%i");
  EXPECT_EQ(text(FloorDiv(Axis("m") * 64 + Axis("i"), 128)), "(%m // 2)");
  EXPECT_EQ(text(Mod(Axis("m") * 64 + Axis("i"), 128)), "(((%m % 2) * 64) + %i)");
  EXPECT_EQ(text(Mod(Axis("m") * 64 + Axis("i"), 96)), "(((%m * 64) + %i) % 96)");
  EXPECT_EQ(text(Mod(Axis("s"), seq)), "%s");
  EXPECT_EQ(text(FloorDiv(Axis("s"), seq)), "0");
  EXPECT_EQ(text(Lt(Axis("t"), past + seq)), "true");
  EXPECT_EQ(text(Lt(Axis("s"), seq)), "true");
  EXPECT_EQ(text(Lt(Axis("s") + 1, seq)), "((%s + 1) < seq)");
  EXPECT_EQ(text(Max(IntLit(0), Min(Axis("i"), IntLit(63)))), "%i");
  EXPECT_EQ(text(MakeSelect(Lt(Axis("i"), IntLit(64)), kX, kY)), "%x");
  EXPECT_EQ(text(Axis("s") * seq - seq * Axis("s") + 3), "3");
  EXPECT_EQ(text(IntLit(5) - kX), "(5 - %x)");
}

TEST(Simplify, DividendsStayInTheirDtype) {
  const Expr x = MakeLoad("x", DType::kI32, {IntLit(0)});
  const RangeMap ranges;
  for (const char* same : {"(((@x[0] // 2) + 1000000000) // 3)", "(((@x[0] % 1000) * 999) % 500)",
                           "((@x[0] // 65536) // 65536)"}) {
    const auto e = ParseExpr(same, {.buffer = [](auto) { return std::optional(DType::kI32); }});
    ASSERT_TRUE(e.ok()) << e.status();
    const Expr simple = Simplify(*e, ranges);
    EXPECT_TRUE(IsExact(simple, ranges)) << same << " became " << Print(simple);
  }
  EXPECT_EQ(Print(Simplify(FloorDiv(FloorDiv(x, 8), 4), ranges)), "(@x[0] // 32)");
  EXPECT_EQ(Print(Simplify(Mod(Mod(x, 8), 4), ranges)), "(@x[0] % 4)");
}

TEST(Simplify, FloatsAreLeftAlone) {
  Expr a = MakeVar("a", DType::kF32);
  Expr sum = (a + FloatLit(0)) - a;
  EXPECT_EQ(Simplify(sum, RangeMap()), sum);
}

TEST(Simplify, KeepsHandleOfWhatIsAlreadySmall) {
  Expr e = MakeLoad("w", DType::kF32, {kX * 4 + kY, FloorDiv(kX, 3)});
  EXPECT_EQ(Simplify(e, RangeMap()), e);
}

TEST(Ranges, NothingIsKnownOfWhatContradictsItself) {
  RangeMap ranges;
  ranges.SetVar("a", {0, 100});
  ranges.SetVar("never", {1, 0});
  const Expr a = MakeVar("a", DType::kI32), never = MakeVar("never", DType::kI32);
  for (BinaryOp op : {BinaryOp::kFloorDiv, BinaryOp::kMod, BinaryOp::kMin, BinaryOp::kShl,
                      BinaryOp::kShr, BinaryOp::kBitAnd, BinaryOp::kBitXor}) {
    for (const Expr& e : {MakeBinary(op, a, never), MakeBinary(op, never, a)}) {
      EXPECT_EQ(Bounds(e, ranges).min, INT32_MIN) << Print(e);
      EXPECT_EQ(Bounds(e, ranges).max, INT32_MAX) << Print(e);
    }
  }
}

TEST(Ranges, OverflowIsUnknownAndNeverWraps) {
  RangeMap ranges;
  ranges.SetVar("x", {0, kNoLimit - 1});
  EXPECT_EQ(Bounds(kX * kX, ranges).max, kNoLimit);
  EXPECT_EQ(Bounds(kX * 4 - 5, ranges), (Range{-5, kNoLimit}));
  EXPECT_EQ(Bounds(MakeVar("ids", DType::kI64), ranges), kUnknownRange);
  Expr big = kX * (int64_t{1} << 62);
  EXPECT_FALSE(ProveNonNegative(IntLit(0) - big * 4, ranges));
}

TEST(Ranges, DividesIsProvedOnlyWhenItHolds) {
  EXPECT_TRUE(Divides(kX * 8 + kY * 16 + 24, 8));
  EXPECT_FALSE(Divides(kX * 8 + kY, 8));
  EXPECT_TRUE(Divides(Mod(kX * 8, 64), 8));
  EXPECT_FALSE(Divides(Mod(kX * 8, 12), 8));
  EXPECT_TRUE(Divides(FloorDiv(kX * 64, 8), 8));
  EXPECT_TRUE(Divides(IntLit(0), 8));
}

}  // namespace
}  // namespace hackc::ir
