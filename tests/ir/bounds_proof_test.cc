// SPDX-License-Identifier: MIT
#include "compiler/ir/bounds_proof.h"

#include <chrono>

#include "gtest/gtest.h"

namespace hackc::ir {
namespace {

TEST(AccessProver, AnAxisBelowAMinimumIsBelowBothOfIt) {
  AccessProver prover({{"past", 0, 100}});
  const Expr end = MakeSymbol("past") + 1, length = CeilDiv(end, 32) * 8;
  const Expr place = Axis("part") * length + Axis("t");
  const size_t mark = prover.Enter();
  prover.SetAxis("part", IntLit(4));
  prover.SetAxis("t", Max(Min(length, end - Axis("part") * length), IntLit(0)));
  EXPECT_TRUE(prover.Less(place, end));
  EXPECT_TRUE(prover.Less(Axis("t"), length));
  EXPECT_FALSE(prover.Less(place, end - 1));
  EXPECT_FALSE(prover.Less(Axis("t"), length - 1));
  prover.Leave(mark);
  EXPECT_FALSE(prover.Less(place, end)) << "known outside of the loop";
}

TEST(AccessProver, AMaximumOfTwoLimitsSaysNothingOfEither) {
  AccessProver prover({{"past", 0, 100}});
  const Expr past = MakeSymbol("past");
  prover.SetAxis("t", Max(past, IntLit(7)));
  EXPECT_FALSE(prover.Less(Axis("t"), past));
  EXPECT_TRUE(prover.Less(Axis("t"), IntLit(100)));
}

// Trees of what lets share, and all ways to push the minima of a sum, grow with powers.
TEST(AccessProver, LongChainsAndSumsTakeNoTime) {
  const auto start = std::chrono::steady_clock::now();
  AccessProver prover({{"n", 1, 9}});
  const Expr n = MakeSymbol("n");
  prover.SetAxis("i", n);
  Expr last = Axis("i");
  for (int k = 0; k < 60; ++k) {
    const std::string name = "l" + std::to_string(k);
    prover.SetLet(name, Mod(last + FloorDiv(last, 3), 7));
    last = Axis(name);
  }
  EXPECT_TRUE(prover.Less(last, IntLit(7)));
  EXPECT_FALSE(prover.Less(last, IntLit(6)));
  Expr sum = Axis("i");
  for (int k = 1; k <= 40; ++k) sum = sum - Min(n, Axis("i") + k);
  EXPECT_FALSE(prover.NonNegative(sum));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(AccessProver, AVariableNamedLikeTheThreadIndexIsAnother) {
  AccessProver prover({});
  prover.SetBuiltin(BuiltinKind::kThread, IntLit(32));
  prover.SetAxis("thread.x", IntLit(8));
  EXPECT_TRUE(prover.Less(Axis("thread.x"), IntLit(8)));
  EXPECT_FALSE(prover.Less(MakeBuiltin(BuiltinKind::kThread), IntLit(8)));
  EXPECT_TRUE(prover.Less(MakeBuiltin(BuiltinKind::kThread), IntLit(32)));
}

}  // namespace
}  // namespace hackc::ir
