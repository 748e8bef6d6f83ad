// SPDX-License-Identifier: MIT
// Verifies Loop IR: the rules of stmt_verify.h (S1 to S13) and
//
//   L1 kind      holds for, let, acc, accumulate and store; loops are sequential, with no digits;
//                nothing of threads
//   L2 engine    values are stored through registers
//   L3 extent    states have no layout; a scalar state is read as %name
//
// Thread safety: a pure function.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/stmt.h"

namespace hackc::ir {

// All errors, "PATH: MESSAGE [RULE]"; empty when the function is good.
std::vector<std::string> VerifyLoop(const LoopFn& fn);

}  // namespace hackc::ir
