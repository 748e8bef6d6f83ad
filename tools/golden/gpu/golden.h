// SPDX-License-Identifier: MIT
// The command line of hackc-golden, without the process round it.
//
//   int exit_code = RunGolden({"tests/data/golden", "--level=kernel"}, std::cout, std::cerr);
//
// Thread safety: one call at a time on one pair of streams.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace hackc::golden {

// 0: every check passed; 1: one failed, or there was none to run; 2: the command line is wrong.
int RunGolden(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace hackc::golden
