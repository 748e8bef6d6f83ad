// SPDX-License-Identifier: MIT
// What holds for all rules of the Graph verifier; tests/invalid breaks them one by one.
#include "compiler/ir/graph_verify.h"

#include <string>
#include <vector>

#include "compiler/ir/graph_text.h"
#include "gmock/gmock.h"

namespace hackc::ir {
namespace {

using testing::ElementsAre;

TEST(GraphVerify, AllErrorsAreReported) {
  absl::StatusOr<GraphModule> module = ParseGraph(
      "hackc graph 1\nmodule \"m\"\ninput %x: f32[4]\n"
      "segment s: repeat 1 from 0 step 1 carry () {\n"
      "  %y: f32[5] = scale(%x) {factor = 2.0}\n  %z: f32[4] = add(%x, %w)\n  yield (%y)\n} -> "
      "(%o)\n"
      "output (%p)\n");
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(VerifyGraph(*module),
              ElementsAre("line 5: segment s / %y: %x is f32[4], the result f32[5] [G12 pointwise]",
                          "line 6: segment s / %z: %w is not defined here [M4 defined]",
                          "line 9: output %p: is not defined here [M12 output]"));
}

}  // namespace
}  // namespace hackc::ir
