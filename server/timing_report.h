// SPDX-License-Identifier: MIT
// The timing report of a program as JSON; docs/timing-report.md describes every field.
//
//   bool final = false;
//   std::string json = TimingJson(program, facts, &final);
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/compile.h"
#include "hackc/v1/program.pb.h"
#include "hackc/v1/worker.pb.h"
#include "server/gpu_probe.h"

namespace hackc::server {

// Part of the key that a report is stored under: a report of other fields or other methods is
// another report.
inline constexpr char kTimingFormat[] = "1";

struct TimingFacts {
  GpuInfo gpu;
  Rates rates;
  double copy_bytes_per_second = 0;
  std::vector<v1::worker::BenchResult> kernels;  // the program's kernels, in order
  std::vector<std::string> disturbances;         // of the whole, for people
  double seconds = 0;
};

// `*final`: every kernel is timed, none is at fault, and nothing disturbed the measurement.
std::string TimingJson(const v1::Program& program, const TimingFacts& facts, bool* final);

// A report that only says why there are no times.
std::string NotTimedJson(const GpuInfo& gpu, const std::string& reason);

// "wrong_result", "hang", ...; "ok" for none.
std::string_view FaultName(v1::worker::Fault fault);

}  // namespace hackc::server
