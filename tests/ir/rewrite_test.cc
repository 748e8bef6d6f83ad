// SPDX-License-Identifier: MIT
#include "compiler/ir/rewrite.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hackc::ir {
namespace {

Stmt Loop(std::string axis, Expr extent, Block body) {
  For loop;
  loop.axis = std::move(axis);
  loop.extent = std::move(extent);
  loop.body = std::move(body);
  return MakeStmt(std::move(loop));
}

Stmt StoreTo(std::string buffer, Expr index, Expr value) {
  Store store;
  store.buffer = std::move(buffer);
  store.indices = {std::move(index)};
  store.value = std::move(value);
  return MakeStmt(std::move(store));
}

Block Sample() {
  return {Loop("m", MakeSymbol("seq"),
               {Loop("one", IntLit(1), {StoreTo("y", Axis("m") + Axis("one"), FloatLit(1))}),
                StoreTo("z", Axis("m"), MakeLoad("x", DType::kF32, {Axis("m")}))})};
}

TEST(Rewrite, IdentityKeepsEveryHandle) {
  Block block = Sample();
  EXPECT_EQ(RewriteStmts(block, [](const Stmt&) { return std::nullopt; }), block);
  EXPECT_EQ(MapExprs(block, [](const Expr&) { return nullptr; }), block);
  EXPECT_EQ(RenameAll(block, [](const std::string& name) { return name; }), block);
}

TEST(Rewrite, ReplacesAStatementByABlockAndKeepsItsSiblings) {
  Block block = Sample();
  Block out = RewriteStmts(block, [](const Stmt& s) -> std::optional<Block> {
    const For* loop = As<For>(s);
    if (!loop || AsInt(loop->extent) != 1) return std::nullopt;
    return SubstituteVars(loop->body, [&](const std::string& name) {
      return name == loop->axis ? IntLit(0) : nullptr;
    });
  });
  const Block& body = ChildBlock(out[0]);
  ASSERT_EQ(body.size(), 2);
  const Store* store = As<Store>(body[0]);
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(Print(store->indices[0]), "%m");
  EXPECT_EQ(body[1], ChildBlock(block[0])[1]);
}

TEST(Rewrite, SharedStatementIsRewrittenOnce) {
  Stmt shared = StoreTo("y", IntLit(0), FloatLit(1));
  int calls = 0;
  Block out = RewriteStmts({shared, shared, Loop("i", IntLit(2), {shared})},
                           [&](const Stmt& s) -> std::optional<Block> {
                             if (As<Store>(s)) ++calls;
                             return std::nullopt;
                           });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(out.size(), 3);
}

TEST(Rewrite, RenameReachesDeclarationsAndUses) {
  Block out = RenameAll(Sample(), [](const std::string& name) { return "r_" + name; });
  const For* loop = As<For>(out[0]);
  EXPECT_EQ(loop->axis, "r_m");
  const Store* store = As<Store>(loop->body[1]);
  EXPECT_EQ(store->buffer, "r_z");
  EXPECT_EQ(Print(store->value), "@r_x[%r_m]");
}

TEST(Rewrite, EqualityIsStructural) {
  Block a = Sample(), b = Sample();
  EXPECT_NE(a, b);
  EXPECT_TRUE(SameValue(a, b));
  Block c = RenameAll(a, [](const std::string& name) { return name == "z" ? "w" : name; });
  EXPECT_FALSE(SameValue(a, c));
  Accumulator sum{"s", Monoid::kSum, {}}, max{"s", Monoid::kMax, {}};
  EXPECT_FALSE(SameValue(MakeStmt(sum), MakeStmt(max)));
}

TEST(Rewrite, WalksInProgramOrder) {
  std::vector<std::string> seen;
  WalkStmts(Sample(), [&](const Stmt& s) {
    if (const For* loop = As<For>(s)) seen.push_back(loop->axis);
    if (const Store* store = As<Store>(s)) seen.push_back(store->buffer);
  });
  EXPECT_THAT(seen, testing::ElementsAre("m", "one", "y", "z"));
  std::vector<std::string> exprs;
  WalkExprs(Sample(), [&](const Expr& e) { exprs.push_back(Print(e)); });
  EXPECT_THAT(exprs, testing::ElementsAre("seq", "1", "(%m + %one)", "1.0", "%m", "@x[%m]"));
}

}  // namespace
}  // namespace hackc::ir
