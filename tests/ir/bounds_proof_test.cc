// SPDX-License-Identifier: MIT
#include "compiler/ir/bounds_proof.h"

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

}  // namespace
}  // namespace hackc::ir
