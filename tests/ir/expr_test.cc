// SPDX-License-Identifier: MIT
#include "compiler/ir/expr.h"

#include <gtest/gtest.h>

namespace hackc::ir {
namespace {

// Inlining one operation into another gives its axes the names of the other's: i is replaced and
// comes back in one step, and folding 0 * 3 + %i to %i must not lead to a second replacement.
TEST(Substitute, ReplacesOnceAlsoWhereFoldingLeavesAVariable) {
  Expr index = Axis("i") * 3 + Axis("j");
  auto replacement = [](const std::string& name) {
    return name == "i" ? IntLit(0) : name == "j" ? Axis("i") : nullptr;
  };
  EXPECT_EQ(Print(Substitute(index, replacement)), "%i");
  Expr chosen = MakeSelect(Lt(Axis("i"), IntLit(1)), Axis("j"), IntLit(7));
  EXPECT_EQ(Print(Substitute(chosen, replacement)), "%i");
}

TEST(Substitute, SwapsVariables) {
  Expr swapped = Substitute(Axis("i") - Axis("j"),
                            [](const std::string& name) { return Axis(name == "i" ? "j" : "i"); });
  EXPECT_EQ(Print(swapped), "(%j - %i)");
}

}  // namespace
}  // namespace hackc::ir
