// SPDX-License-Identifier: MIT
// The model's first kernel for ids of each type, from the graph to a cubin.
#include <sstream>

#include "compiler/support/cat.h"
#include "compiler/toolchain/nvrtc.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/opt/opt.h"

namespace hackc::kernels {
namespace {

TEST(Embedding, NvrtcTakesIdsOfEachType) {
  for (const char* dtype : {"i32", "i64"}) {
    std::istringstream in(Cat(R"(hackc graph 1
module "m"
symbol batch in 1..2
symbol seq in 1..9
input %ids: )",
                              dtype, R"([batch, seq]
weight %table: bf16[50, 40] "embed.weight"

segment s: repeat 1 from 0 step 1 carry () {
  %e: bf16[batch, seq, 40] = embedding(%ids, %table)
  yield (%e)
} -> (%out)

output (%out)
)"));
    std::ostringstream out, err;
    ASSERT_EQ(opt::RunOpt({"--emit=cuda", "--verify"}, in, out, err), opt::kExitOk) << err.str();
    const std::string text = out.str();
    const size_t entry = text.find("\nhackc_") + 1;
    ASSERT_NE(entry, 0) << text;
    const auto cubin =
        toolchain::CompileCubin(text, text.substr(entry, text.find('(', entry) - entry), "sm_90a");
    EXPECT_TRUE(cubin.ok()) << cubin.status() << "\n" << text;
  }
}

}  // namespace
}  // namespace hackc::kernels
