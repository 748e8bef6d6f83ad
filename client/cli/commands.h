// SPDX-License-Identifier: MIT
// The sub-commands fetch, explain, explain-key, status and report, all small. Each registers its
// options and calls `chosen` when it is the one on the command line.
//
//   FetchCommand fetch;
//   fetch.AddTo(app, [&] { command = [&] { return fetch.Run(std::cout); }; });
//
// Thread safety: plain values.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "client/cli/request_options.h"

namespace hackc::client {

class FetchCommand {
 public:
  void AddTo(CLI::App& app, std::function<void()> chosen);
  // Writes each blob to `out_dir` under its digest and prints its path.
  absl::Status Run(std::ostream& out);

 private:
  ConnectionOptions connection_;
  std::vector<std::string> digests_;
  std::string out_dir_ = ".";
};

class ExplainCommand {
 public:
  void AddTo(CLI::App& app, std::function<void()> chosen);
  absl::Status Run(std::ostream& out);

 private:
  ConnectionOptions connection_;
  RequestOptions request_;
  std::string kernel_;
  std::string level_ = "all";
};

class ExplainKeyCommand {
 public:
  void AddTo(CLI::App& app, std::function<void()> chosen);
  absl::Status Run(std::ostream& out);

 private:
  ConnectionOptions connection_;
  RequestOptions request_;
};

class StatusCommand {
 public:
  void AddTo(CLI::App& app, std::function<void()> chosen);
  absl::Status Run(std::ostream& out);

 private:
  ConnectionOptions connection_;
  bool json_ = false;
};

class ReportCommand {
 public:
  void AddTo(CLI::App& app, std::function<void()> chosen);
  // The times in a report.json that `submit --out` wrote.
  absl::Status Run(std::ostream& out);

 private:
  std::string path_;
};

}  // namespace hackc::client
