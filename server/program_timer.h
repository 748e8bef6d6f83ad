// SPDX-License-Identifier: MIT
// Times the kernels of a program on the GPU of a bench process: references are compiled as other
// kernels are, then each kernel is checked and timed by itself. What a kernel does to the process
// is its own fault: the process is replaced, and the next kernel is measured.
//
//   ProgramTimer timer({...});
//   TimedProgram timed =
//       timer.Time(program, cancelled, [](int done, int total, const std::string& name) {});
//   if (timed.final) store(timed.json);
//
// Blocks, but never longer than the limits of the pools and of `program_limit`. Thread safety: one
// call at a time.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/artifacts.h"
#include "server/backend.h"
#include "server/gpu_probe.h"
#include "server/kernel_builder.h"
#include "server/timing_report.h"
#include "server/worker_pool.h"

namespace hackc::server {

struct TimerParts {
  CompilerBackend& backend;
  KernelBuilder& kernels;
  WorkerPool& workers;  // for references
  WorkerPool& bench;    // one bench process
  const GpuInfo& gpu;
  std::string nvrtc_version;
  std::chrono::milliseconds program_limit{300'000};  // then the kernels left are not timed
};

struct TimedProgram {
  std::string json;
  bool final = false;  // undisturbed and complete: worth keeping
};

class ProgramTimer {
 public:
  using Cancelled = std::function<bool()>;
  using Progress = std::function<void(int done, int total, const std::string& kernel)>;

  explicit ProgramTimer(TimerParts parts) : parts_(std::move(parts)) {}

  TimedProgram Time(const StoredProgram& program, const Cancelled& cancelled,
                    const Progress& progress);

 private:
  absl::StatusOr<std::vector<v1::worker::BenchCall>> PrepareCalls(const StoredProgram& program,
                                                                  const Cancelled& cancelled);
  absl::StatusOr<v1::worker::GpuFacts> Probe();
  v1::worker::BenchResult Measure(v1::worker::BenchCall call);

  const TimerParts parts_;
};

}  // namespace hackc::server
