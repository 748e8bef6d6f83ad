// SPDX-License-Identifier: MIT
// Small helpers of the server's tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hackc/v1/compiler.pb.h"
#include "server/engine.h"

namespace hackc::server {

// A folder that goes with the test.
class TempDir {
 public:
  TempDir() {
    std::string pattern = std::filesystem::temp_directory_path() / "hackc-server-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string File(const std::string& name) const { return path_ / name; }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline int CountLines(const std::string& path) {
  std::ifstream file(path);
  int lines = 0;
  for (std::string line; std::getline(file, line);) ++lines;
  return lines;
}

// All that one stream said.
struct Answer {
  absl::Status status;
  std::vector<v1::Progress> progress;
  std::vector<v1::KernelReady> kernels;
  std::optional<v1::ProgramReady> program;
  std::optional<v1::Report> report;

  void Add(const v1::CompileEvent& event) {
    if (event.has_progress()) progress.push_back(event.progress());
    if (event.has_kernel()) kernels.push_back(event.kernel());
    if (event.has_program()) program = event.program();
    if (event.has_report()) report = event.report();
  }
};

inline Answer Read(EventStream& stream) {
  Answer answer;
  while (std::optional<v1::CompileEvent> event = stream.WaitNext()) answer.Add(*event);
  answer.status = stream.status();
  return answer;
}

}  // namespace hackc::server
