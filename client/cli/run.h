// SPDX-License-Identifier: MIT
// The sub-command `run`: compiles a Hugging Face folder's model for this machine's GPU, loads its
// weights and continues prompts of token ids.
//
//   hackc-client run Qwen2.5-7B --local --ids 151644,872,198 --ids 9707 --tokens 64
//
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "client/cli/cli.h"
#include "client/cli/request_options.h"
#include "client/runtime/runtime.h"

namespace hackc::client {

class RunCommand {
 public:
  void AddTo(CLI::App& app, std::function<void()> chosen);
  // Tokens and speed to `out`, progress to `err`.
  absl::Status Run(std::ostream& out, std::ostream& err, const CliEnvironment& environment);

 private:
  absl::StatusOr<ProgramFiles> Compile(const CudaDriver& driver, std::ostream& err,
                                       const CliEnvironment& environment) const;
  absl::Status Generate(Runtime& runtime, std::ostream& out) const;

  ConnectionOptions connection_;
  std::string directory_;
  std::string program_;
  std::string dtype_;
  std::vector<std::string> prompts_;
  std::vector<std::vector<int64_t>> ids_;  // of each prompt
  int64_t page_size_ = 0;
  int64_t tokens_ = 16;
  double temperature_ = 0;
  uint64_t seed_ = 0;
  int device_ = 0;
};

}  // namespace hackc::client
