// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <exception>
#include <iostream>

#include "client/cli/cli.h"

int main(int argc, char** argv) {
  try {
    hackc::client::CliEnvironment environment;
    environment.err_is_terminal = isatty(STDERR_FILENO) == 1;
    return hackc::client::RunCli({argv + 1, argv + argc}, std::cout, std::cerr, environment);
  } catch (const std::exception& error) {
    std::cerr << hackc::client::ErrorLine(absl::InternalError(error.what())) << std::endl;
    return hackc::client::kExitOther;
  }
}
