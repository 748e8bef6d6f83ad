// SPDX-License-Identifier: MIT
// A timing report (docs/timing-report.md) as a table for people.
//
//   std::cout << TimingTable(report.timing_json());
//
// Fields that a report lacks are left empty: it may come from a server of another version. Thread
// safety: pure.
#pragma once

#include <string>

namespace hackc::client {

std::string TimingTable(const std::string& timing_json);

}  // namespace hackc::client
