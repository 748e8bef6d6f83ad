// SPDX-License-Identifier: MIT
// The command line of hackc-opt, without the process round it: runs passes on IR text of any level.
//
//   int exit_code =
//       RunOpt({"--passes=split_axes", "--interp", "in.hir"}, std::cin, std::cout, std::cerr);
//
// The IR goes to `out`; messages, times and dumps go to `err`. A message about the text starts with
// FILE:LINE:COLUMN or FILE:LINE, all others with `hackc-opt: `.
// Thread safety: one call at a time on one set of streams.
#pragma once

#include <istream>
#include <ostream>
#include <string>
#include <vector>

namespace hackc::opt {

enum ExitCode : int {
  kExitOk = 0,
  kExitWrong =
      1,  // the text is no IR or its schedule does not fit, --verify found errors, or --interp another result or none
  kExitUsage = 2,     // options, file, names of passes, symbols
  kExitInternal = 3,  // a pass, another step of the compiler or NVRTC broke off
};

int RunOpt(const std::vector<std::string>& arguments, std::istream& in, std::ostream& out,
           std::ostream& err);

}  // namespace hackc::opt
