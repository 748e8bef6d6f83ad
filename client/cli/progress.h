// SPDX-License-Identifier: MIT
// Progress of one compile: one line that rewrites itself on a terminal, a plain line for each event
// elsewhere, so that logs stay readable.
//
//   ProgressPrinter progress(std::cerr, isatty(2));
//   progress.Show(event);
//
// Thread safety: none.
#pragma once

#include <ostream>
#include <string>

#include "hackc/v1/compiler.pb.h"

namespace hackc::client {

class ProgressPrinter {
 public:
  ProgressPrinter(std::ostream& stream, bool live) : stream_(stream), live_(live) {}
  ~ProgressPrinter();  // wipes the live line
  ProgressPrinter(const ProgressPrinter&) = delete;
  ProgressPrinter& operator=(const ProgressPrinter&) = delete;

  void Show(const v1::CompileEvent& event);

 private:
  void Print(const std::string& text);

  std::ostream& stream_;
  bool live_;
  bool dirty_ = false;
  std::string last_;
};

}  // namespace hackc::client
