// SPDX-License-Identifier: MIT
// What the laws of this folder share: the target, the tolerance, random kernels, how one is lowered
// and how far two are apart, and that text is a fixed point.
//
//   ExpectFixedPoint(unit);   // Print(Parse(Print(unit))) is Print(unit)
//
// Thread safety: test code, one thread.
#pragma once

#include <regex>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/choose_schedule.h"
#include "compiler/schedule/target.h"
#include "compiler/support/status_macros.h"
#include "gtest/gtest.h"
#include "tests/support/random_tensor.h"
#include "tools/opt/pass_list.h"
#include "tools/opt/random_run.h"
#include "tools/opt/unit.h"

namespace hackc::property {

inline constexpr double kTolerance = 1e-10;  // sums of some thousand terms in another order

inline const schedule::Target& Hopper() {
  static const auto* target = new schedule::Target(schedule::FindTarget("sm_90a").value());
  return *target;
}

// The kernels of a random module, as loops.
inline absl::StatusOr<opt::Kernels> RandomLoops(unsigned seed) {
  opt::Unit unit = test::RandomTensorModule(seed, 3 + static_cast<int>(seed % 8));
  for (const std::string& pass : opt::DefaultPasses(unit, opt::Level::kLoop)) {
    HACKC_ASSIGN_OR_RETURN(unit, opt::RunPass(pass, unit, Hopper()));
  }
  return std::get<opt::Kernels>(std::move(unit));
}

inline auto LowerChosen(const ir::LoopFn& loop) {
  return passes::LowerLoop(loop, schedule::ChooseSchedule(loop, Hopper()).value());
}

// The largest relative difference of what two kernels write in the same run.
inline absl::StatusOr<double> DifferenceOf(const ir::KernelFn& a, const ir::KernelFn& b,
                                           const opt::RandomRun& run) {
  HACKC_ASSIGN_OR_RETURN(const auto of_a, opt::Interpret(opt::Kernels{{a}, std::nullopt}, run));
  HACKC_ASSIGN_OR_RETURN(const auto of_b, opt::Interpret(opt::Kernels{{b}, std::nullopt}, run));
  return opt::LargestDifference(of_a, of_b);
}

// Comments say what the kernels of a module are launched with; they are no part of the text.
inline std::string PrintAlone(const opt::Unit& unit) {
  const std::string text =
      std::regex_replace(opt::Print(unit), std::regex("(^|\\n)#[^\\n]*"), "$1");
  return std::regex_replace(text, std::regex("^\\n+|\\n(?=\\n)"), "");
}

inline void ExpectFixedPoint(const opt::Unit& unit) {
  const std::string printed = PrintAlone(unit);
  const auto parsed = opt::Parse(printed);
  ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << printed;
  EXPECT_EQ(PrintAlone(*parsed), printed);
}

}  // namespace hackc::property
