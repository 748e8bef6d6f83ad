// SPDX-License-Identifier: MIT
#include "client/cli/text_table.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace hackc::client {

std::string TextTable(Row heading, const std::vector<Row>& rows) {
  std::vector<bool> left;
  for (std::string& cell : heading) {
    left.push_back(cell[0] == '<');
    if (left.back()) cell.erase(0, 1);
  }
  std::vector<size_t> widths(heading.size());
  auto measure = [&](const Row& row) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  };
  measure(heading);
  for (const Row& row : rows) measure(row);
  std::string text;
  auto print = [&](const Row& row) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      std::string padding(widths[i] - row[i].size(), ' ');
      absl::StrAppend(&line, i == 0 ? "" : "  ", left[i] ? "" : padding, row[i],
                      left[i] ? padding : "");
    }
    absl::StripTrailingAsciiWhitespace(&line);
    absl::StrAppend(&text, line, "\n");
  };
  print(heading);
  for (const Row& row : rows) print(row);
  return text;
}

}  // namespace hackc::client
