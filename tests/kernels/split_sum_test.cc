// SPDX-License-Identifier: MIT
// A sum over several blocks, each adding its part to the output: what no pass makes yet. Any number
// of parts gives the same, and the ways in which such kernels go wrong are seen.
#include "absl/strings/str_replace.h"
#include "compiler/interp/kernel_interpreter.h"
#include "gmock/gmock.h"
#include "tests/kernels/hand_written.h"

namespace hackc::kernels {
namespace {

constexpr char kText[] = R"(hackc kernel 1
fn split "y += the sum of each row of x, in PARTS parts" {
  read @x: f32[4, 64]
  readwrite @y: f32[4]
  launch {grid = [PARTS, 1, 1], threads = 32}
  alloc @sum: f32 local[1]
  @sum[0] = 0.0
  for %k: reduce serial in (64 // PARTS) {
    @sum[0] = (@sum[0] + @x[thread.x, ((block.x * (64 // PARTS)) + %k) if (thread.x < 4)])
  }
  atomic_add {buffer = @y, indices = [thread.x], value = @sum[0], guard = (thread.x < 4)}
}
)";

// y of the kernel with `value` added for each part; all of y is `start` before.
std::vector<double> SumOf(int parts, const std::string& value, double start,
                          const std::vector<std::pair<std::string, std::string>>& changes = {}) {
  std::string text = absl::StrReplaceAll(
      kText, {{"PARTS", std::to_string(parts)}, {"value = @sum[0]", "value = " + value}});
  text = absl::StrReplaceAll(text, changes);
  const Case c = ParseCase("split", text);
  interp::FunctionRun run;
  run.buffers["x"] = interp::TensorData::Zeros(ir::DType::kF32, {4, 64});
  for (int64_t i = 0; i < 256; ++i) run.buffers["x"].values[i] = 1 + i % 7;
  run.buffers["y"] = interp::TensorData::Filled(ir::DType::kF32, {4}, start);
  const absl::Status status = interp::RunKernel(c.kernel, run);
  if (!status.ok()) throw std::runtime_error(std::string(status.message()));
  return run.buffers["y"].values;
}

TEST(SplitSum, EverySplitGivesTheSame) {
  const std::vector<double> whole = SumOf(1, "@sum[0]", 0);
  EXPECT_EQ(whole[0], 253);
  for (int parts : {2, 4, 8, 64}) EXPECT_EQ(SumOf(parts, "@sum[0]", 0), whole) << parts;
}

// A bias, a residual or a norm belongs behind the last part.
TEST(SplitSum, AnEpilogueInEachPartIsAnotherResult) {
  for (const char* epilogue : {"(@sum[0] + 1.0)", "rsqrt(@sum[0])", "(@sum[0] * @sum[0])"}) {
    const std::vector<double> whole = SumOf(1, epilogue, 0);
    for (int parts : {2, 4, 8}) {
      EXPECT_GT(std::abs(SumOf(parts, epilogue, 0)[0] - whole[0]), 1e-3 * whole[0]) << epilogue;
    }
  }
  // Linear ones may stay.
  EXPECT_EQ(SumOf(8, "(@sum[0] * 2.0)", 0), SumOf(1, "(@sum[0] * 2.0)", 0));
}

TEST(SplitSum, AnOutputThatNobodyZeroedIsSeen) {
  EXPECT_TRUE(std::isnan(SumOf(2, "@sum[0]", NAN)[3]));
  EXPECT_THAT(([] {
                SumOf(2, "@sum[0]", 0, {{"readwrite @y", "write @y"}});
              }),
              testing::ThrowsMessage<std::runtime_error>(
                  testing::HasSubstr("@y[0] is read by thread 0 before it was written")));
}

}  // namespace
}  // namespace hackc::kernels
