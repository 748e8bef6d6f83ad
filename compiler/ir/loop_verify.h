// SPDX-License-Identifier: MIT
// Verifies Loop IR: the rules of stmt_verify.h (S1 to S14) and
//
//   L1 digits    loops have no digits
//   L2 engine    values are stored through registers, without a hint to the caches
//   L3 layout    states have no layout
//   The kinds (S6) are for, let, acc, accumulate and store; loops are sequential; nothing of
//   threads.
//
// Thread safety: a pure function.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/rule.h"
#include "compiler/ir/stmt.h"

namespace hackc::ir {

inline constexpr auto kLoopRules = Rules('L', {"digits", "engine", "layout"});

// All errors, as ErrorText of rule.h writes them; empty when the function is good.
std::vector<std::string> VerifyLoop(const LoopFn& fn);

}  // namespace hackc::ir
