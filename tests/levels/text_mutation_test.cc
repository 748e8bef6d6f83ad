// SPDX-License-Identifier: MIT
// Text from anywhere: whatever is parsed, verified or run answers with a value or a status, and
// what parses prints to text that parses to the same. Inputs are printed kernels with seeded
// mutations of bytes and tokens.
#include <random>
#include <string>
#include <vector>

#include "compiler/interp/kernel_interpreter.h"
#include "compiler/interp/loop_interpreter.h"
#include "compiler/interp/tile_interpreter.h"
#include "compiler/ir/kernel_verify.h"
#include "compiler/ir/loop_verify.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/ir/tile_verify.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/choose_schedule.h"
#include "compiler/schedule/target.h"
#include "gmock/gmock.h"
#include "tests/support/golden.h"

namespace hackc {
namespace {

constexpr char kAttention[] = R"(hackc loop 1
fn attention "attention" {
  symbol seq in 1..8
  read @q: bf16[seq, 16]
  read @k: bf16[seq, 16]
  read @v: bf16[seq, 16]
  write @y: bf16[seq, 16]
  for %s: free in seq {
    acc %o: softmax_sum[16]
    for %t: reduce in (%s + 1) {
      acc %sum: sum
      for %d: contract in 16 {
        %sum <- (f32(@q[%s, %d]) * f32(@k[%t, %d]))
      }
      let %score = select((%t < 4), (%sum * 0.25), -inf)
      for %e2: free in 16 {
        %o[%e2] <- %score, f32(@v[%t, %e2]) when (%t <= %s)
      }
    }
    for %e: free in 16 {
      @y[%s, %e] = bf16(@o[%e])
    }
  }
}
)";

// One to three changes: bytes dropped, doubled or replaced, or a word put elsewhere.
std::string Mutate(std::string text, std::mt19937& random) {
  auto at = [&] { return random() % text.size(); };
  static const std::string kBytes = " %@[](){}<>-=*/,.0123456789abfinsxl\"#\n";
  for (unsigned i = 0, count = 1 + random() % 3; i < count && !text.empty(); ++i) {
    switch (random() % 5) {
      case 0: text.erase(at(), 1 + random() % 6); break;
      case 1: text.insert(at(), 1, kBytes[random() % kBytes.size()]); break;
      case 2: text[at()] = kBytes[random() % kBytes.size()]; break;
      case 3: text.insert(at(), text.substr(at(), random() % 12)); break;
      case 4: {
        const size_t digit = text.find_first_of("0123456789", at());
        if (digit != std::string::npos) text.insert(digit, std::to_string(random()));
        break;
      }
    }
  }
  return text;
}

template <typename Fn, typename Parse, typename Verify, typename Run>
void Check(const std::string& text, int rounds, int seed, Parse parse, Verify verify, Run run) {
  ASSERT_OK(parse(text));
  std::mt19937 random(seed);
  int parsed = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::string mutated = Mutate(text, random);
    SCOPED_TRACE(mutated);
    absl::StatusOr<Fn> fn = parse(mutated);
    if (!fn.ok()) {
      ASSERT_EQ(fn.status().code(), absl::StatusCode::kInvalidArgument);
      continue;
    }
    ++parsed;
    const std::string printed = ir::Print(*fn);
    absl::StatusOr<Fn> again = parse(printed);
    ASSERT_OK(again);
    ASSERT_EQ(ir::Print(*again), printed);
    ASSERT_TRUE(ir::SameValue(fn->fn, again->fn));
    if (!verify(*fn).empty()) continue;
    interp::FunctionRun inputs;
    for (const ir::SymbolDecl& symbol : fn->fn.symbols) inputs.symbols[symbol.name] = symbol.min;
    EXPECT_FALSE(run(*fn, inputs).ok());  // no inputs are given
  }
  EXPECT_GT(parsed, rounds / 50);
}

class TextMutation : public testing::TestWithParam<int> {};

TEST_P(TextMutation, NothingCrashes) {
  auto loop = ir::ParseLoop(kAttention);
  ASSERT_OK(loop);
  EXPECT_THAT(ir::VerifyLoop(*loop), testing::IsEmpty());
  auto target = schedule::FindTarget("sm_90a");
  auto lowered = passes::LowerLoop(*loop, schedule::ChooseSchedule(*loop, *target).value());
  ASSERT_OK(lowered);
  constexpr int kRounds = 1500;
  Check<ir::LoopFn>(
      kAttention, kRounds, GetParam(), ir::ParseLoop, ir::VerifyLoop,
      [](const ir::LoopFn& fn, interp::FunctionRun& run) { return interp::RunLoop(fn, run); });
  Check<ir::TileFn>(
      ir::Print(lowered->tile), kRounds, GetParam(), ir::ParseTile, ir::VerifyTile,
      [](const ir::TileFn& fn, interp::FunctionRun& run) { return interp::RunTile(fn, run); });
  Check<ir::KernelFn>(
      ir::Print(lowered->kernel), kRounds, GetParam(), ir::ParseKernel,
      [](const ir::KernelFn& fn) { return ir::VerifyKernel(fn); },
      [](const ir::KernelFn& fn, interp::FunctionRun& run) { return interp::RunKernel(fn, run); });
}

INSTANTIATE_TEST_SUITE_P(Seeds, TextMutation, testing::Range(0, 4));

}  // namespace
}  // namespace hackc
