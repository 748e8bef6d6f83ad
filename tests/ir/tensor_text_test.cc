// SPDX-License-Identifier: MIT
// Text of Tensor IR, and what its verifier refuses and no text can say (tests/invalid has the
// rest).
#include "compiler/ir/tensor_text.h"

#include <gmock/gmock.h>

#include "compiler/ir/tensor_verify.h"

namespace hackc::ir {
namespace {

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
              ElementsAre(HasSubstr("%k is not an axis here [T3 scope]")));
  EXPECT_THAT(with(MakeCast(DType::kF32, MakeSymbol("width"))),
              ElementsAre(HasSubstr("symbol width is not declared [T3 scope]")));
  EXPECT_THAT(with(MakeCast(DType::kF32, MakeBuiltin(BuiltinKind::kThread))),
              ElementsAre(HasSubstr("thread.x is of Kernel level [T3 scope]")));
  EXPECT_THAT(with(MakeLoad("x", DType::kF32, {Axis("s"), IntLit(0)}, Lt(Axis("s"), IntLit(3)))),
              IsEmpty());
  Expr deep = x;
  for (int i = 0; i < kMaxExprDepth; ++i) deep = MakeUnary(UnaryOp::kTanh, deep);
  EXPECT_THAT(with(deep), ElementsAre(HasSubstr("levels [T3 scope]")));
}

}  // namespace
}  // namespace hackc::ir
