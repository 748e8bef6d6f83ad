// SPDX-License-Identifier: MIT
// Every kernel of tests/data/kernels: text, verifier, interpreter in several orders of warps, and
// NVRTC.
#include "tests/kernels/hand_written.h"

#include "compiler/codegen/cuda_emitter.h"
#include "compiler/interp/kernel_interpreter.h"
#include "compiler/ir/kernel_verify.h"
#include "compiler/toolchain/nvrtc.h"
#include "gmock/gmock.h"

namespace hackc::kernels {
namespace {

class Kernel : public testing::TestWithParam<std::string> {};

TEST_P(Kernel, TextGoesRound) {
  const Case c = ReadHandWritten(GetParam());
  const std::string printed = ir::Print(c.kernel);
  auto again = ir::ParseKernel(printed);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ir::Print(*again), printed);
  EXPECT_TRUE(ir::SameValue(again->fn, c.kernel.fn));
}

TEST_P(Kernel, TheVerifierTakesIt) {
  EXPECT_THAT(ir::VerifyKernel(ReadHandWritten(GetParam()).kernel), testing::IsEmpty());
}

TEST_P(Kernel, TheInterpreterGetsWhatItsNameSays) {
  const Case c = ReadHandWritten(GetParam());
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    interp::FunctionRun run = Inputs(c, static_cast<int>(seed));
    const Truth truth = Expected(c, run);
    const absl::Status status =
        interp::RunKernel(c.kernel, run, {.reverse_blocks = seed == 2, .schedule_seed = seed});
    ASSERT_TRUE(status.ok()) << status;
    const std::vector<double>& y = run.buffers.at("y").values;
    ASSERT_EQ(y.size(), truth.values.size());
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_LE(std::abs(y[i] - truth.values[i]), truth.bounds[i])
          << "element " << i << " is " << y[i] << ", expected " << truth.values[i];
    }
  }
}

TEST_P(Kernel, NvrtcTakesItsText) {
  auto version = toolchain::Version();
  if (!version.ok()) GTEST_SKIP() << version.status();
  const ir::CudaFn cuda = codegen::EmitCuda(ReadHandWritten(GetParam()).kernel);
  auto cubin = toolchain::CompileCubin(cuda.text, cuda.entry, "sm_90a");
  ASSERT_TRUE(cubin.ok()) << cubin.status() << "\n" << cuda.text;
  EXPECT_EQ(cubin->warnings, "") << cuda.text;
  EXPECT_EQ(cubin->spill_bytes, 0u);
}

INSTANTIATE_TEST_SUITE_P(, Kernel, testing::ValuesIn(HandWritten()),
                         [](const auto& info) { return info.param; });

TEST(Ring, CarriesItsParityOverForAnyTripCounts) {
  for (const char* name : {"copy_ring2", "copy_ring3", "copy_ring4"}) {
    Case c = ReadHandWritten(name);
    for (int64_t t = 1; t <= 5; ++t) {
      for (int64_t u : {1, 2, 6}) {
        c.symbols = {{"t", t}, {"u", u}};
        interp::FunctionRun run = Inputs(c, 1);
        const std::vector<double> x = run.buffers.at("x").values;
        const absl::Status status = interp::RunKernel(c.kernel, run, {.schedule_seed = 7});
        ASSERT_TRUE(status.ok()) << name << " t=" << t << " u=" << u << ": " << status;
        EXPECT_EQ(run.buffers.at("y").values, x) << name << " t=" << t << " u=" << u;
      }
    }
  }
}

}  // namespace
}  // namespace hackc::kernels
