// SPDX-License-Identifier: MIT
// Text and verifier of Tensor IR: one module for each rule that is broken, and the error it gets.
#include "compiler/ir/tensor_text.h"

#include <gmock/gmock.h>

#include "compiler/ir/tensor_verify.h"

namespace hackc::ir {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string ModuleText(const std::string& ops) {
  return R"(hackc tensor 1
module "m"
symbol seq in 1..64
symbol past in 0..8
input %x: f32[seq, 32]
input %ids: i32[seq]
weight %w: bf16[48, 32] "w"
state %cache: f32[100, 32] "cache"

segment s: repeat 1 from 0 step 1 carry () {
)" + ops +
         R"(  yield (%y)
} -> (%out)

output (%out)
)";
}

std::vector<std::string> Errors(const std::string& ops) {
  auto module = ParseTensor(ModuleText(ops));
  EXPECT_TRUE(module.ok()) << module.status();
  if (!module.ok()) return {};
  return VerifyTensor(*module);
}

std::string ParseError(const std::string& ops) {
  return std::string(ParseTensor(ModuleText(ops)).status().message());
}

TEST(TensorText, EveryKindRoundTrips) {
  const std::string text = ModuleText(
      R"(  %a: bf16[seq, 32] = gather "rows" [s in seq, c in 32] @w[max(min(@ids[%s], 47), 0), %c]
  %b: f32[seq, 48] = contract "linear" [s in seq, n in 48] over [k in 32] (f32(@a[%s, %k]), f32(@w[%n, %k]))
  %c: f32[seq] = reduce max "peak" [s in seq] over [k in 48] (@b[%s, %k])
  %d: f32[seq, 32] = reduce softmax_sum "mix" [s in seq, c in 32] over [t in (%s + 1)] (@c[%t], @x[%t, %c])
  %e: f32[100, 32] = scatter "append" [r in 100, c in 32] update [s in seq, c in 32] @cache[(past + %s), %c] <- @d[%s, %c]
  %f: f32[seq, 4, 8] = view "heads" [s in seq, h in 4, d in 8] @e[%s, ((%h * 8) + %d)]
  %y: f32[seq, 4, 8] = map "scaled" [s in seq, h in 4, d in 8] select((%d < 4), @f[%s, %h, %d], @f[%s, %h, (%d - 4)])
)");
  auto module = ParseTensor(text);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(Print(*module), text);
  EXPECT_THAT(VerifyTensor(*module), IsEmpty());
}

TEST(TensorText, ErrorsSayWhereAndWhat) {
  EXPECT_THAT(ParseError("  %y: f32[seq] = fold \"l\" [s in seq] 1.0\n"),
              HasSubstr("`fold` is not a Tensor operation"));
  EXPECT_THAT(ParseError("  %y: f32[seq] = reduce mean \"l\" [s in seq] over [k in 3] (1.0)\n"),
              HasSubstr("`mean` is not a monoid"));
  EXPECT_THAT(ParseError("  %y: f32[seq] = map \"l\" [s in seq] @x[%s, %c]\n"),
              HasSubstr("line 11, column 44"));
  EXPECT_THAT(ParseError("  %y: f32[seq] = contract \"l\" [s in seq] over [k in 3] (1.0)\n"),
              HasSubstr("a contract has two operands"));
  EXPECT_THAT(ParseError("  %y: f32[seq] = map [s in seq] 1.0\n"), HasSubstr("the label"));
}

struct Broken {
  std::string rule, ops, message;
};

class TensorVerify : public testing::TestWithParam<Broken> {};

TEST_P(TensorVerify, RefusesWithItsRule) {
  EXPECT_THAT(Errors(GetParam().ops),
              Contains(testing::AllOf(HasSubstr("segment s / %"), HasSubstr(GetParam().message),
                                      HasSubstr("[" + GetParam().rule + "]"))));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, TensorVerify,
    testing::Values(
        Broken{"axes", "  %y: f32[seq, 32] = map \"l\" [s in seq] 1.0\n", "1 axes for 2 dims"},
        Broken{"axes", "  %y: f32[seq] = map \"l\" [s in 64] 1.0\n", "axis s in 64, dim 0 is seq"},
        Broken{"axis", "  %y: f32[2, 2] = map \"l\" [s in 2, s in 2] 1.0\n",
               "axis `s` is not a name of its own"},
        Broken{"axis", "  %y: f32[2] = reduce sum \"l\" [s in 2] over [k in @ids[0]] (1.0)\n",
               "extent @ids[0] of k"},
        Broken{"load", "  %y: f32[seq] = map \"l\" [s in seq] @x[%s]\n",
               "@x[%s] of @x: f32[seq, 32]"},
        Broken{"dtype", "  %y: bf16[seq] = map \"l\" [s in seq] @x[%s, 0]\n",
               "expected bf16, got f32"},
        Broken{"dtype",
               "  %y: bf16[seq] = reduce sum \"l\" [s in seq] over [k in 4] (@x[%s, %k])\n",
               "sums are f32"},
        Broken{"dtype",
               "  %y: f32[48] = contract \"l\" [n in 48] over [k in 32] (@w[%n, %k], @x[0, %k])\n",
               "expected f32, got bf16"},
        Broken{"bounds", "  %y: f32[seq] = map \"l\" [s in seq] @x[%s, (%s + 1)]\n",
               "index (%s + 1) may leave dim 1 of @x, 32"},
        Broken{"bounds", "  %y: f32[seq] = map \"l\" [s in seq] @x[(%s - 1), 0]\n",
               "index (%s - 1)"},
        Broken{"bounds", "  %y: f32[seq, 32] = gather \"l\" [s in seq, c in 32] @x[@ids[%s], %c]\n",
               "index @ids[%s]"},
        Broken{"bounds", "  %y: f32[64] = map \"l\" [c in 64] select((%c < 40), @x[0, %c], 0.0)\n",
               "index %c"},
        Broken{"bounds",
               "  %y: f32[seq] = reduce sum \"l\" [s in seq] over [t in (%s + 2)] (@x[%t, 0])\n",
               "index %t"},
        Broken{"reduce",
               "  %y: f32[seq] = reduce softmax_sum \"l\" [s in seq] over [k in 4] (@x[%s, %k])\n",
               "softmax_sum takes 2 operands, got 1"},
        Broken{"reduce", "  %y: f32[seq] = reduce sum \"l\" [s in seq] over [] (@x[%s, 0])\n",
               "no axis to reduce"},
        Broken{"view", "  %y: f32[seq] = view \"l\" [s in seq] (@x[%s, 0] + 1.0)\n",
               "the source is not a load"},
        Broken{"view", "  %y: f32[seq] = view \"l\" [s in seq] @x[%s, max(min(@ids[%s], 31), 0)]\n",
               "holds a load"},
        Broken{"view", "  %y: f32[seq] = gather \"l\" [s in seq] @x[%s, 0]\n",
               "no index is a load"},
        Broken{"scatter",
               "  %y: f32[seq, 32] = scatter \"l\" [s in seq, c in 32] update [c in 32] @x[0, %c] "
               "<- 1.0\n",
               "@x is not a state"},
        Broken{"scatter",
               "  %y: f32[100] = scatter \"l\" [r in 100] update [c in 32] @cache[0, %c] <- 1.0\n",
               "not the state's type"},
        Broken{"scatter",
               "  %u: f32[100, 32] = scatter \"l\" [r in 100, c in 32] update [d in 32] @cache[0, "
               "%d] <- 1.0\n"
               "  %y: f32[32] = map \"l\" [c in 32] @cache[0, %c]\n",
               "reads @cache after its update"},
        Broken{"bounds",
               "  %y: f32[100, 32] = scatter \"l\" [r in 100, c in 32] update [s in 93, d in 32] "
               "@cache[(past + %s), %d] <- 1.0\n",
               "index (past + %s) may leave dim 0 of @cache, 100"},
        Broken{"label", "  %y: f32[seq] = map \"two words\" [s in seq] 1.0\n",
               "\"two words\" is not a name"}),
    [](const auto& info) { return info.param.rule + "_" + std::to_string(info.index); });

// What text cannot say.
TEST(TensorVerifyNodes, OfAnotherScopeOrLevel) {
  auto module = ParseTensor(ModuleText("  %y: f32[seq] = map \"l\" [s in seq] 1.0\n"));
  ASSERT_TRUE(module.ok()) << module.status();
  auto with = [&](const Expr& value) {
    TensorModule changed = *module;
    changed.segments[0].ops[0].op = TensorMap{value};
    return VerifyTensor(changed);
  };
  Expr x = MakeLoad("x", DType::kF32, {Axis("s"), IntLit(0)});
  EXPECT_THAT(with(x), IsEmpty());
  EXPECT_THAT(with(MakeCast(DType::kF32, Axis("k"))),
              ElementsAre(HasSubstr("%k is not an axis here [scope]")));
  EXPECT_THAT(with(MakeCast(DType::kF32, MakeSymbol("width"))),
              ElementsAre(HasSubstr("symbol width is not declared [scope]")));
  EXPECT_THAT(with(MakeCast(DType::kF32, MakeBuiltin(BuiltinKind::kThread))),
              ElementsAre(HasSubstr("thread.x is of Kernel level [scope]")));
  EXPECT_THAT(with(MakeLoad("x", DType::kF32, {Axis("s"), IntLit(0)}, Lt(Axis("s"), IntLit(3)))),
              ElementsAre(HasSubstr("guarded load of @x [scope]")));
  Expr deep = x;
  for (int i = 0; i < kMaxExprDepth; ++i) deep = MakeUnary(UnaryOp::kTanh, deep);
  EXPECT_THAT(with(deep), ElementsAre(HasSubstr("levels [scope]")));
}

}  // namespace
}  // namespace hackc::ir
