// SPDX-License-Identifier: MIT
// The command line of hackc-opt, without the process round it: runs passes on IR text of any level.
//
//   int exit_code = RunOpt({"--passes=split_axes", "--interp", "in.hir"}, std::cin, std::cout, std::cerr);
//
// The IR goes to `out`; messages, times and dumps go to `err`. Each failure has its own exit code.
// Thread safety: one call at a time on one set of streams.
#pragma once

#include <istream>
#include <ostream>
#include <string>
#include <vector>

namespace hackc::opt {

enum ExitCode : int {
  kExitOk = 0,
  kExitUsage = 1,     // options, file, names of passes, symbols
  kExitParse = 2,     // the text is no IR
  kExitVerify = 3,    // --verify found errors
  kExitDiffers = 4,   // --interp: another result, or IR that cannot be run
  kExitInternal = 5,  // a pass broke off
};

int RunOpt(const std::vector<std::string>& arguments, std::istream& in, std::ostream& out,
           std::ostream& err);

}  // namespace hackc::opt
