// SPDX-License-Identifier: MIT
// Rows of text in columns as wide as their widest cell.
//
//   TextTable({"<kernel", "us"}, {{"attention", "12.5"}});
//
// A column is left-aligned where its heading starts with '<' (which is not printed), else
// right-aligned. Thread safety: pure.
#pragma once

#include <string>
#include <vector>

namespace hackc::client {

using Row = std::vector<std::string>;

std::string TextTable(Row heading, const std::vector<Row>& rows);

}  // namespace hackc::client
