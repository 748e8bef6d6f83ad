// SPDX-License-Identifier: MIT
// The command line of hackc-client, without the process round it.
//
//   int exit_code = RunCli({"status", "--server", "127.0.0.1:7070"}, std::cout, std::cerr, {});
//
// Every failure is one line on `err`: "hackc-client: CODE: what went wrong".
// Thread safety: one call at a time on one pair of streams.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hackc::client {

enum ExitCode : int {
  kExitOk = 0,
  kExitOther = 1,
  kExitUsage = 2,
  kExitInvalidArgument = 3,
  kExitUnavailable = 4,
};

struct CliEnvironment {
  bool err_is_terminal = false;  // a live progress line instead of plain lines
};

int RunCli(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err,
           const CliEnvironment& environment);

int ExitCodeOf(const absl::Status& status);

// "hackc-client: INVALID_ARGUMENT: ..." in one line, whatever the message holds.
std::string ErrorLine(const absl::Status& status);

}  // namespace hackc::client
