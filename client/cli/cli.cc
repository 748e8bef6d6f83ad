// SPDX-License-Identifier: MIT
#include "client/cli/cli.h"

#include <algorithm>
#include <functional>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/commands.h"
#include "client/cli/run.h"
#include "client/cli/submit.h"

namespace hackc::client {

int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk: return kExitOk;
    case absl::StatusCode::kInvalidArgument: return kExitInvalidArgument;
    case absl::StatusCode::kUnavailable: return kExitUnavailable;
    default: return kExitOther;
  }
}

std::string ErrorLine(const absl::Status& status) {
  std::vector<std::string> lines =
      absl::StrSplit(status.message(), absl::ByAnyChar("\r\n"), absl::SkipWhitespace());
  std::string text = absl::StrJoin(lines, " | ");
  // Control characters of a hostile message must not reach the terminal.
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return absl::StrCat("hackc-client: ", absl::StatusCodeToString(status.code()), ": ", text);
}

int RunCli(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err,
           const CliEnvironment& environment) {
  CLI::App app("Asks a hackc server for kernels of a language model.", "hackc-client");
  app.set_version_flag("--version", HACKC_VERSION);
  app.require_subcommand(1);

  std::function<absl::Status()> command;
  SubmitCommand submit;
  submit.AddTo(app, [&] { command = [&] { return submit.Run(out, err, environment); }; });
  FetchCommand fetch;
  fetch.AddTo(app, [&] { command = [&] { return fetch.Run(out); }; });
  ExplainCommand explain;
  explain.AddTo(app, [&] { command = [&] { return explain.Run(out); }; });
  ExplainKeyCommand explain_key;
  explain_key.AddTo(app, [&] { command = [&] { return explain_key.Run(out); }; });
  RunCommand run;
  run.AddTo(app, [&] { command = [&] { return run.Run(out, err, environment); }; });
  ReportCommand report;
  report.AddTo(app, [&] { command = [&] { return report.Run(out); }; });
  StatusCommand status;
  status.AddTo(app, [&] { command = [&] { return status.Run(out); }; });

  // CLI11 takes the arguments last first.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::Success& help) {
    app.exit(help, out, err);
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    err << "hackc-client: usage: " << absl::StrJoin(absl::StrSplit(error.what(), '\n'), " ")
        << " (see --help)\n";
    return kExitUsage;
  }
  absl::Status result = command();
  out.flush();
  if (result.ok() && !out) result = absl::DataLossError("cannot write to the standard output");
  if (!result.ok()) err << ErrorLine(result) << std::endl;
  return ExitCodeOf(result);
}

}  // namespace hackc::client
