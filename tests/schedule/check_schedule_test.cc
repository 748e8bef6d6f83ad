// SPDX-License-Identifier: MIT
// Each way in which a schedule does not fit a nest, alone, with its whole message. That what is
// taken lowers is a law of tests/property.
#include "compiler/schedule/check_schedule.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "compiler/ir/stmt_text.h"
#include "tests/support/golden.h"

namespace hackc::schedule {
namespace {

using ir::Digit;
using ir::LoopKind;

constexpr Digit Threads(int extent, int stride) { return {Digit::Kind::kThread, extent, stride}; }
constexpr Digit Registers(int extent) { return {Digit::Kind::kRegister, extent, 1}; }
constexpr Digit Matrix() { return {Digit::Kind::kMatrix, 16, 1}; }

// A product, and a schedule of it on matrix instructions that fits.
constexpr char kProduct[] = R"(hackc loop 1
fn product "x w" {
  symbol seq in 1..70
  read @x: bf16[seq, 96]
  read @w: bf16[64, 96]
  write @y: f32[seq, 64]
  for %m: free in seq {
    for %n: free in 64 {
      acc %sum: sum
      for %k: contract in 96 {
        %sum <- (f32(@x[%m, %k]) * f32(@w[%n, %k]))
      }
      @y[%m, %n] = %sum
    }
  }
}
)";

ir::Schedule ProductSchedule() {
  ir::Schedule schedule;
  schedule.threads = 64;
  schedule.instruction = ir::MatrixInstruction::kMma;
  schedule.axes = {{"m", LoopKind::kGridX, 1, {Threads(2, 32), Registers(2), Threads(8, 4)}},
                   {"n", LoopKind::kGridY, 1, {Registers(2), Threads(4, 1), Registers(2)}},
                   {"k", LoopKind::kSerial, 2, {Matrix()}}};
  schedule.stages = {{"x", "k", 2, ir::CopyEngine::kCpAsync, 8},
                     {"w", "k", 2, ir::CopyEngine::kCpAsync, 8}};
  return schedule;
}

// Attention over keys up to each row, whose ends are in memory for `lengths`.
std::string Attention(const std::string& end) {
  return R"(hackc loop 1
fn attention "attention" {
  symbol seq in 1..70
  read @q: f32[seq, 8]
  read @k: f32[seq, 8]
  read @v: f32[seq, 12]
  read @lengths: i32[seq]
  write @y: f32[seq, 12]
  for %s: free in seq {
    acc %o: softmax_sum[12]
    for %t: reduce in )" +
         end + R"( {
      acc %sum: sum
      for %d: contract in 8 {
        %sum <- (@q[%s, %d] * @k[%t, %d])
      }
      for %e2: free in 12 {
        %o[%e2] <- %sum, @v[%t, %e2]
      }
    }
    for %e: free in 12 {
      @y[%s, %e] = @o[%e]
    }
  }
}
)";
}

ir::Schedule AttentionSchedule() {
  ir::Schedule schedule;
  schedule.threads = 64;
  schedule.axes = {{"s", LoopKind::kGridX, 1, {Threads(2, 32)}},
                   {"t", LoopKind::kSerial, 2, {Threads(16, 1)}},
                   {"t_value", LoopKind::kSerial, 2, {Threads(8, 4)}},
                   {"e2", LoopKind::kSerial, 1, {Threads(4, 1), Registers(3)}},
                   {"e", LoopKind::kSerial, 1, {Threads(4, 1), Registers(3)}}};
  return schedule;
}

using Change = std::function<void(ir::Schedule&)>;

std::string Check(const std::string& text, ir::Schedule schedule, const Change& change) {
  change(schedule);
  const auto loop = ir::ParseLoop(text);
  EXPECT_TRUE(loop.ok()) << loop.status();
  if (!loop.ok()) return "";
  const absl::Status status = CheckSchedule(*loop, schedule, FindTarget("sm_90a").value());
  EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}
std::string Product(const Change& change) { return Check(kProduct, ProductSchedule(), change); }
std::string Softmax(const Change& change, const std::string& end = "(%s + 1)") {
  return Check(Attention(end), AttentionSchedule(), change);
}

TEST(CheckSchedule, TakesWhatFits) {
  EXPECT_EQ(Product([](ir::Schedule&) {}), "");
  EXPECT_EQ(Softmax([](ir::Schedule&) {}), "");
  EXPECT_EQ(Product([](ir::Schedule& s) { s = ir::Schedule(); }), "");
}

TEST(CheckSchedule, LaunchAndNames) {
  EXPECT_EQ(
      Product([](ir::Schedule& s) { s.threads = 48; }),
      "line 7: tile product: 48 threads, expected a power of two from 32 to 1024 [B1 schedule]");
  EXPECT_EQ(Product([](ir::Schedule& s) { s.min_blocks_per_sm = 33; }),
            "product: schedule: 33 blocks of 64 threads, expected what sm_90a holds: blocks of "
            "1024, up to 32 of them "
            "and 2048 threads on a multiprocessor");
  EXPECT_EQ(
      Product([](ir::Schedule& s) { s.cluster = 2; }),
      "product: schedule: wgmma, split3, a cluster or a split reduction, which no pass makes");
  EXPECT_EQ(Softmax([](ir::Schedule& s) { s.axes[2].axis = "u"; }),
            "attention: schedule: axis %u, which is no loop");
  EXPECT_EQ(Softmax([](ir::Schedule& s) {
              s.stages = {{"y", "s"}};
            }),
            "attention: schedule: stage of @y along %s, expected a loop and a buffer that nothing "
            "is written to");
}

TEST(CheckSchedule, DigitsOfAxesRoundOneAnother) {
  EXPECT_EQ(Product([](ir::Schedule& s) {
              s.axes[1].digits.insert(s.axes[1].digits.begin(), Threads(2, 32));
            }),
            "product: schedule: axis %n: digits use bits of the thread index that those of %m "
            "round it use");
  EXPECT_EQ(Softmax([](ir::Schedule& s) { s.axes[2].digits = {Threads(2, 1)}; }),
            "attention: schedule: axis %e2: digits use bits of the thread index that those of %t "
            "round it use");
  EXPECT_EQ(Product([](ir::Schedule& s) { s.axes[1].digits[0].extent = 600; }),
            "product: schedule: axis %n: 2400 elements of a thread with the axes round it, "
            "expected at most 1024");
}

TEST(CheckSchedule, EndsOfLoops) {
  constexpr char kExpected[] =
      ", expected an end that grows with %s or does not vary with it, whose coordinates run "
      "together";
  EXPECT_EQ(
      Softmax([](ir::Schedule&) {}, "(seq - %s)"),
      std::string("attention: schedule: axis %t: ends at (((seq - %s) + 31) // 32)") + kExpected);
  const char* const lengths = "min(max(@lengths[%s], 0), seq)";
  EXPECT_EQ(Softmax([](ir::Schedule& s) { s.axes[0].digits.clear(); }, lengths), "");
  EXPECT_EQ(Softmax([](ir::Schedule&) {}, lengths),
            std::string("attention: schedule: axis %t: ends at ((min(max(@lengths[%s], 0), seq) + "
                        "31) // 32)") +
                kExpected);
}

TEST(CheckSchedule, Grid) {
  EXPECT_EQ(Softmax([](ir::Schedule& s) {
              s.axes[4].outer = LoopKind::kGridY, s.axes[4].digits = {Registers(3)};
            }),
            "attention: schedule: axis %e: on the grid, with 12 coordinates; expected a free axis "
            "over symbols, alone "
            "in its place, 1 to 65535 blocks along y and z");
  EXPECT_EQ(Product([](ir::Schedule& s) { s.axes[0].steps = 2; }),
            "product: schedule: axis %n: on the grid inside of %m, expected a grid axis without "
            "steps round it");
}

TEST(CheckSchedule, AxesOfAState) {
  EXPECT_EQ(Softmax([](ir::Schedule& s) { s.axes[4].digits = {Registers(12)}; }),
            "attention: schedule: state %o is indexed by %e, expected an axis of 12 digits, the "
            "same wherever it is "
            "indexed");
  EXPECT_EQ(Softmax([](ir::Schedule& s) { s.axes[2].steps = 3; }),
            "attention: schedule: axis %t: chunks of 32, tiles of 24 values; expected a serial "
            "axis whose chunk is "
            "whole tiles of %t_value");
}

TEST(CheckSchedule, GuardsOfWeights) {
  const auto guarded = [](const std::string& guard) {
    std::string text = Attention("(%s + 1)");
    const std::string update = "%o[%e2] <- %sum, @v[%t, %e2]";
    text.insert(text.find(update) + update.size(), " when " + guard);
    return Check(text, AttentionSchedule(), [](ir::Schedule&) {});
  };
  EXPECT_EQ(guarded("((%t % 3) != %s)"), "");
  EXPECT_EQ(guarded("(%e2 < 5)"),
            "attention: schedule: softmax sum %o with a guard over %e2, expected one that its "
            "columns share");
}

// The keys of a chunk are not those of the loop: some lie behind its end, some before a mask's.
TEST(CheckSchedule, SumsBesideASoftmax) {
  std::string text = Attention("(%s + 1)");
  text.insert(text.find("    acc %o"), "    acc %keys: sum\n");
  text.insert(text.find("      acc %sum"), "      %keys <- 1.0\n");
  EXPECT_EQ(
      Check(text, AttentionSchedule(), [](ir::Schedule&) {}),
      "attention: schedule: sum %keys, expected a loop of its own, not that of a softmax sum");
}

TEST(CheckSchedule, MatrixInstructions) {
  EXPECT_EQ(Product([](ir::Schedule& s) {
              s.axes[0].digits = {Registers(2), Threads(16, 4)};
            }),
            "product: schedule: axis %k: matrix digits, expected mma of 16 and round the sum an "
            "axis whose digits end "
            "in register(2), thread(8, 4), one in thread(4, 1), register(2), and no others");
  EXPECT_EQ(Product([](ir::Schedule& s) { s.axes[2].steps = 4; }),
            "product: schedule: axis %k: tiles of 64 over 96, expected whole ones where matrix "
            "instructions sum");
  for (const auto& change : {Change([](ir::Schedule& s) { s.stages.erase(s.stages.begin()); }),
                             Change([](ir::Schedule& s) { s.stages[0].padding = 4; })}) {
    EXPECT_EQ(Product(change),
              "product: schedule: operand @x[%m, %k] of a matrix instruction, expected a 16-bit "
              "load over %k and %m, "
              "staged in rows of a multiple of 16 bytes");
  }
}

TEST(CheckSchedule, RingsAndMemory) {
  EXPECT_EQ(Product([](ir::Schedule& s) { s.stages[0].depth = 3; }),
            "product: schedule: stage of @w along %k: 2 slots beside a ring of 3, expected one "
            "depth in a loop");
  // Two rings of 64 slots: of 32 rows and of 16, each of 32 elements and 8 more.
  EXPECT_EQ(Product([](ir::Schedule& s) { s.stages[0].depth = s.stages[1].depth = 64; }),
            "product: schedule: 245760 bytes of shared memory, expected at most 232448");
}

}  // namespace
}  // namespace hackc::schedule
