// SPDX-License-Identifier: MIT
// The meaning of index arithmetic, written down apart from the compiler, and the check that
// whatever is known of an expression holds at every point of its variables' ranges.
//
//   CheckEverywhere(FloorDiv(Axis("x") * 4 + 3, 4), {{"x", {-5, 7}}});
//
// Thread safety: test code, one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/ir/ranges.h"
#include "compiler/ir/simplify.h"

namespace hackc::ir {

using Values = std::map<std::string, int64_t>;
using Variables = std::vector<std::pair<std::string, Range>>;

// Floor division, and a modulus with the divisor's sign. Fails the test where a divisor is 0.
int64_t EvalIndex(const Expr& e, const Values& values);

// Simplify keeps the meaning and is stable, sums read back, Bounds and KnownDivisor hold; and what
// is proved of `e`'s two sides, where it has two, is true.
void CheckEverywhere(const Expr& e, const Variables& variables);

}  // namespace hackc::ir
