// SPDX-License-Identifier: MIT
// The options that say what is compiled and by whom, shared by `submit`, `explain` and
// `explain-key`.
//
//   RequestOptions options;
//   options.AddTo(*app.add_subcommand("submit", "..."));
//   ...
//   HACKC_ASSIGN_OR_RETURN(v1::ModelDescription model, options.Model());
//
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "client/compiler_api.h"

namespace hackc::client {

// For integers: without it CLI11 takes what does not fit for the largest that does.
CLI::Validator WholeNumber(uint64_t low, uint64_t high);

// Which compiler answers: a server, or this process.
struct ConnectionOptions {
  std::string server;  // empty: $HACKC_SERVER, else 127.0.0.1:7070
  double timeout_seconds = 5;
  bool local = false;
  std::string cache_dir;  // with `local`; empty: the user's own

  void AddTo(CLI::App& app, bool with_local);
  absl::StatusOr<std::unique_ptr<CompilerApi>> Open() const;
};

struct RequestOptions {
  std::string model_path;
  std::string arch;
  std::string dtype;
  std::string batch;
  std::string seq;
  std::string past;
  int64_t page_size = 0;
  std::string logits;
  int64_t layers = 0;

  void AddTo(CLI::App& app);
  // The file's description with the command line's values in place of its own.
  absl::StatusOr<v1::ModelDescription> Model() const;
  v1::Target Target() const;
};

// "N" (exactly N) or "A..B"; `minimum` <= A <= B. INVALID_ARGUMENT naming `field`.
absl::StatusOr<v1::Range> ParseRange(const std::string& field, const std::string& text,
                                     int64_t minimum);

}  // namespace hackc::client
