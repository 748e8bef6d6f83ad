// SPDX-License-Identifier: MIT
// The sub-command `submit`: asks for a compile, shows its progress, and prints or writes what came.
//
//   SubmitCommand submit;
//   submit.AddTo(app, [&] { command = [&] { return submit.Run(out, err, environment); }; });
//
// Thread safety: plain values.
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "client/cli/cli.h"
#include "client/cli/request_options.h"

namespace hackc::client {

class SubmitCommand {
 public:
  void AddTo(CLI::App& app, std::function<void()> chosen);
  // Table or JSON to `out`, progress to `err`.
  absl::Status Run(std::ostream& out, std::ostream& err, const CliEnvironment& environment);

 private:
  ConnectionOptions connection_;
  RequestOptions request_;
  std::string out_dir_;
  bool json_ = false;
};

}  // namespace hackc::client
