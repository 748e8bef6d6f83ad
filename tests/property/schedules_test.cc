// SPDX-License-Identifier: MIT
// Laws of schedules, on random ones: CheckSchedule says before any pass runs whether a schedule
// fits a loop nest. What it takes lowers, verifies and computes what the nest says; what it refuses
// would not have.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "compiler/ir/rewrite.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/check_schedule.h"
#include "compiler/schedule/choose_schedule.h"
#include "tests/property/cases.h"
#include "tests/property/laws.h"
#include "tests/property/random_schedule.h"
#include "tests/support/golden.h"
#include "tools/opt/random_run.h"

namespace hackc::property {
namespace {

using opt::Unit;

constexpr const char* kLoops[] = {
    // A product with a bias, in bf16, over an odd row.
    R"(hackc loop 1
fn product "x * w + b" {
  symbol seq in 1..70
  read @x: bf16[seq, 48]
  read @w: bf16[33, 48]
  read @b: bf16[33]
  write @y: bf16[seq, 33]
  for %m: free in seq {
    for %n: free in 33 {
      acc %sum: sum
      for %k: contract in 48 {
        %sum <- (f32(@x[%m, %k]) * f32(@w[%n, %k]))
      }
      @y[%m, %n] = bf16((%sum + f32(@b[%n])))
    }
  }
}
)",
    // Statistics of a row, then its columns.
    R"(hackc loop 1
fn norm "rms norm" {
  symbol seq in 1..40
  read @x: f32[seq, 29]
  read @w: f32[29]
  write @y: f32[seq, 29]
  for %m: free in seq {
    acc %sum: sum
    acc %most: max
    for %k: reduce in 29 {
      %sum <- (@x[%m, %k] * @x[%m, %k])
      %most <- @x[%m, %k]
    }
    let %scale = (rsqrt(((%sum / 29.0) + 0.001)) * %most)
    for %n: free in 29 {
      @y[%m, %n] = ((@x[%m, %n] * %scale) * @w[%n])
    }
  }
}
)",
    // Attention over a triangle.
    R"(hackc loop 1
fn attention "causal attention" {
  symbol seq in 1..40
  read @q: bf16[seq, 32]
  read @k: bf16[seq, 32]
  read @v: bf16[seq, 24]
  write @y: bf16[seq, 24]
  for %s: free in seq {
    acc %o: softmax_sum[24]
    for %t: reduce in (%s + 1) {
      acc %sum: sum
      for %d: contract in 32 {
        %sum <- (f32(@q[%s, %d]) * f32(@k[%t, %d]))
      }
      let %score = (%sum * 0.2)
      for %e2: free in 24 {
        %o[%e2] <- %score, f32(@v[%t, %e2]) when ((%t % 3) != 1)
      }
    }
    for %e: free in 24 {
      @y[%s, %e] = bf16(@o[%e])
    }
  }
}
)",
    // 16-bit scores, and values that are rounded to 16 bits where they are read.
    R"(hackc loop 1
fn rounded "attention" {
  symbol seq in 1..40
  read @q: bf16[seq, 16]
  read @k: bf16[seq, 16]
  read @v: f32[seq, 32]
  write @y: bf16[seq, 32]
  for %s: free in seq {
    acc %o: softmax_sum[32]
    for %t: reduce in (%s + 1) {
      acc %sum: sum
      for %d: contract in 16 {
        %sum <- (f32(@q[%s, %d]) * f32(@k[%t, %d]))
      }
      for %e2: free in 32 {
        %o[%e2] <- %sum, f32(bf16(@v[%t, %e2]))
      }
    }
    for %e: free in 32 {
      @y[%s, %e] = bf16(@o[%e])
    }
  }
}
)",
    // Two products in one loop, over heads that share one dimension, and what follows them.
    R"(hackc loop 1
fn gate "gate * up" {
  symbol seq in 1..40
  read @x: f16[seq, 2, 32]
  read @g: f16[24, 64]
  read @u: f16[24, 64]
  write @y: f32[seq, 2, 24]
  for %m: free in seq {
    for %h: free in 2 {
      for %n: free in 24 {
        acc %a: sum
        acc %b: sum
        for %k: contract in 32 {
          %a <- (f32(@x[%m, %h, %k]) * f32(@g[%n, ((%h * 32) + %k)]))
          %b <- (f32(@x[%m, %h, %k]) * f32(@u[%n, ((%h * 32) + %k)]))
        }
        @y[%m, %h, %n] = (%a * %b)
      }
    }
  }
}
)",
    // Attention over sequences of their own lengths, with the score of the whole.
    R"(hackc loop 1
fn lengths "attention over a cache" {
  symbol batch in 1..3
  symbol seq in 1..40
  read @q: f32[batch, 8]
  read @k: f32[batch, 50, 8]
  read @v: f32[batch, 50, 12]
  read @lengths: i32[batch]
  write @y: f32[batch, 12]
  write @scores: f32[batch]
  for %b: free in batch {
    acc %o: softmax_sum[12]
    acc %l: log_sum_exp
    for %t: reduce in (min(max(@lengths[%b], 0), seq) + 1) {
      acc %sum: sum
      for %d: contract in 8 {
        %sum <- (@q[%b, %d] * @k[%b, %t, %d])
      }
      for %e2: free in 12 {
        %o[%e2] <- %sum, @v[%b, %t, %e2]
      }
      %l <- %sum
    }
    for %e: free in 12 {
      @y[%b, %e] = @o[%e]
    }
    @scores[%b] = %l
  }
}
)",
    // Sums whose axes end later and later, and sooner and sooner.
    R"(hackc loop 1
fn triangles "prefixes and suffixes" {
  symbol seq in 1..40
  read @x: f32[seq, 6]
  write @y: f32[seq, 6]
  write @z: f32[seq]
  for %m: free in seq {
    for %c: free in 6 {
      acc %sum: sum
      for %k: reduce in (%m + 1) {
        %sum <- @x[%k, %c]
      }
      @y[%m, %c] = %sum
    }
    acc %least: min
    for %j: reduce in (seq - %m) {
      %least <- @x[(%m + %j), 0]
    }
    @z[%m] = %least
  }
}
)",
    // Nests side by side, one of them over a product of dimensions.
    R"(hackc loop 1
fn sides "two nests" {
  symbol seq in 1..40
  read @x: bf16[seq, 40]
  read @s: f32[1, 40]
  readwrite @state: bf16[50, 4, 10]
  write @y: bf16[seq, 40]
  for %m: free in seq {
    for %h: free in 4 {
      for %c: free in 10 {
        @state[(%m + 3), %h, %c] = @x[%m, ((%h * 10) + %c)] when ((%m % 2) == 0)
      }
    }
    for %n: free in 40 {
      @y[%m, %n] = bf16((f32(@x[%m, %n]) * @s[0, %n]))
    }
  }
}
)"};

// What became of schedules. What CheckSchedule takes must lower, verify and be right; of what it
// refuses, a few would have come out right all the same.
struct Tally {
  int accepted = 0, refused = 0, needlessly = 0;
  std::map<std::string, int> reasons;  // of needless refusals
};

bool IsRight(const passes::LoweredKernel& lowered, const opt::RandomRun& run,
             const opt::Results& truth) {
  const auto results = opt::Interpret(opt::Kernels{{lowered.kernel}, std::nullopt}, run);
  const auto difference = results.ok() ? opt::LargestDifference(truth, *results) : results.status();
  return difference.ok() && *difference <= kTolerance;
}

void ExpectRightOrRefused(const ir::LoopFn& loop, unsigned seed, const opt::RandomRun& run,
                          const opt::Results& truth, Tally& tally) {
  const ir::Schedule chosen = schedule::ChooseSchedule(loop, Hopper()).value();
  const ir::Schedule schedule = RandomSchedule(loop, Hopper(), seed);
  SCOPED_TRACE(ir::Print(ir::TileFn{loop.fn, schedule}));
  ASSERT_OK(schedule::CheckSchedule(loop, chosen, Hopper()));
  const absl::Status fits = schedule::CheckSchedule(loop, schedule, Hopper());
  const auto lowered = passes::LowerLoop(loop, schedule, schedule::LimitsOf(Hopper()));
  if (!fits.ok()) {
    EXPECT_EQ(fits.code(), absl::StatusCode::kInvalidArgument) << fits;
    ++tally.refused;
    if (!lowered.ok() || !IsRight(*lowered, run, truth)) return;
    ++tally.needlessly;
    ++tally.reasons[std::string(fits.message())];
    return;
  }
  ++tally.accepted;
  ASSERT_OK(lowered);
  for (const opt::KernelFunction& function :
       {opt::KernelFunction(lowered->tile), opt::KernelFunction(lowered->kernel)}) {
    const Unit unit = opt::Kernels{{function}, std::nullopt};
    ExpectFixedPoint(unit);
    const auto results = opt::Interpret(unit, run);
    ASSERT_TRUE(results.ok()) << results.status() << "\n" << opt::Print(unit);
    const auto difference = opt::LargestDifference(truth, *results);
    ASSERT_TRUE(difference.ok()) << difference.status();
    ASSERT_LE(*difference, kTolerance) << opt::Print(unit);
  }
}

void Report(const Tally& tally) {
  std::printf("%d schedules accepted, %d refused, %d of them needlessly\n", tally.accepted,
              tally.refused, tally.needlessly);
  for (const auto& [reason, count] : tally.reasons) std::printf("%6d %s\n", count, reason.c_str());
}

TEST(Laws, AnyScheduleGivesARightKernelOrNone) {
  Tally tally;
  ForEachSeed(30, [&](unsigned seed) {
    for (const char* text : kLoops) {
      const auto loop = ir::ParseLoop(text);
      ASSERT_OK(loop);
      static constexpr int64_t kLengths[] = {1, 5, 17, 33};
      const opt::RandomRun run{.symbols = {{"seq", kLengths[seed % 4]}, {"batch", 1 + seed % 3}},
                               .seed = seed};
      const auto truth = opt::Interpret(opt::Kernels{{*loop}, std::nullopt}, run);
      ASSERT_OK(truth);
      ExpectRightOrRefused(*loop, seed, run, *truth, tally);
    }
  });
  Report(tally);
  EXPECT_GT(tally.accepted, tally.refused);
}

TEST(Laws, AnyScheduleOfRandomKernelsGivesARightKernelOrNone) {
  Tally tally;
  ForEachSeed(25, [&](unsigned seed) {
    const auto kernels = RandomLoops(seed);
    ASSERT_OK(kernels);
    const opt::RandomRun run{.symbols = {{"seq", 1 + seed % 7}}, .seed = seed};
    for (const opt::KernelFunction& function : kernels->functions) {
      const auto truth = opt::Interpret(opt::Kernels{{function}, std::nullopt}, run);
      ASSERT_OK(truth);
      ExpectRightOrRefused(std::get<ir::LoopFn>(function), seed, run, *truth, tally);
    }
  });
  Report(tally);
  EXPECT_GT(tally.accepted, tally.refused);
}

// What a kernel's passes make up for it, its own values may be called already.
void ExpectNamesMayBeTaken(const ir::LoopFn& loop, unsigned seed, const opt::RandomRun& run) {
  const auto plain = LowerChosen(loop);
  ASSERT_OK(plain);
  std::set<std::string> made = ir::NamesIn(plain->tile.fn.body), kept;
  made.merge(ir::NamesIn(plain->kernel.fn.body));
  for (const std::string& name : ir::NamesIn(loop.fn.body)) made.erase(name);
  for (const ir::BufferDecl& buffer : loop.fn.buffers) kept.insert(buffer.name);
  std::vector<std::string> names(made.begin(), made.end());
  std::shuffle(names.begin(), names.end(), std::mt19937(seed));
  std::map<std::string, std::string> renamed;
  ir::LoopFn other = loop;
  other.fn.body = ir::RenameAll(loop.fn.body, [&](const std::string& name) {
    if (kept.contains(name) || (names.empty() && !renamed.contains(name))) return name;
    const auto [own, added] = renamed.try_emplace(name, names.empty() ? "" : names.back());
    if (added) names.pop_back();
    return own->second;
  });
  SCOPED_TRACE(ir::Print(other));
  EXPECT_FALSE(renamed.empty());
  const auto lowered = LowerChosen(other);
  ASSERT_OK(lowered);
  const auto difference = DifferenceOf(plain->kernel, lowered->kernel, run);
  ASSERT_OK(difference);
  EXPECT_LE(*difference, kTolerance);
}

TEST(Laws, NamesThatPassesMakeMayBeTaken) {
  ForEachSeed(20, [](unsigned seed) {
    for (const char* text : kLoops) {
      const auto loop = ir::ParseLoop(text);
      ASSERT_OK(loop);
      ExpectNamesMayBeTaken(*loop, seed, {.symbols = {{"seq", 17}, {"batch", 2}}, .seed = seed});
    }
  });
}

}  // namespace
}  // namespace hackc::property
