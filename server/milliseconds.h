// SPDX-License-Identifier: MIT
// Time since a moment, as reports give it. Thread safety: a pure function of the clock.
#pragma once

#include <chrono>

namespace hackc::server {

inline double MillisecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace hackc::server
