// SPDX-License-Identifier: MIT
// The operations of a module's text, a line each: "%y: f32[4] = scale(%x) {factor = 2.0}".
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace hackc::test {

inline std::vector<std::string> OperationLines(const std::string& module) {
  std::vector<std::string> lines;
  std::istringstream text(module);
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("  %")) lines.push_back(line.substr(2));
  }
  return lines;
}

}  // namespace hackc::test
