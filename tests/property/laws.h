// SPDX-License-Identifier: MIT
// What the laws of this folder share: the target, the tolerance, and that text is a fixed point.
//
//   ExpectFixedPoint(unit);   // Print(Parse(Print(unit))) is Print(unit)
//
// Thread safety: test code, one thread.
#pragma once

#include <regex>
#include <string>

#include "compiler/schedule/target.h"
#include "gtest/gtest.h"
#include "tools/opt/unit.h"

namespace hackc::property {

inline constexpr double kTolerance = 1e-10;  // sums of some thousand terms in another order

inline const schedule::Target& Hopper() {
  static const auto* target = new schedule::Target(schedule::FindTarget("sm_90a").value());
  return *target;
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
