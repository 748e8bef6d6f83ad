// SPDX-License-Identifier: MIT
// One program on the GPU of a bench process: its kernels are checked against references, which are
// compiled as other kernels are, then timed. What a kernel does to the process is its own fault:
// the process is replaced, and the next kernel is measured.
//
//   ProgramTimer timer(parts, program, cancelled);
//   HACKC_RETURN_IF_ERROR(timer.Check(progress));   // INTERNAL: a kernel is wrong; publish nothing
//   TimedProgram timed = timer.Time(progress);      // minutes, perhaps; the program may be out
//   if (timed.final) store(timed.json);
//
// All checks of a program are asked for at once, so they wait for one kernel of another program's
// times at most. Blocks, but never longer than the limits of the pools and of `program_limit`.
// Thread safety: one call at a time.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
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
  // A kernel that passed its check and then broke the process or wrote outside its buffers.
  absl::Status fault;
};

class ProgramTimer {
 public:
  using Cancelled = std::function<bool()>;
  using Progress = std::function<void(int done, int total, const std::string& kernel)>;

  // `program` outlives it.
  ProgramTimer(TimerParts parts, const StoredProgram& program, Cancelled cancelled)
      : parts_(std::move(parts)), program_(program), cancelled_(std::move(cancelled)) {}

  // INTERNAL: a kernel is at fault, or no reference could be made of it. Where the GPU or its
  // process is, the check is OK and not complete, and Time says why.
  absl::Status Check(const Progress& progress);
  bool complete() const { return complete_; }  // every kernel matched its reference

  TimedProgram Time(const Progress& progress);

  // The kernel that a status of Check or Time is about; -1: of none.
  int guilty() const { return guilty_; }

 private:
  using Call = v1::worker::BenchCall;
  using Result = v1::worker::BenchResult;

  absl::Status Prepare();  // calls_
  absl::StatusOr<v1::worker::Reply> Ask(const v1::worker::Request& request);
  absl::Status Works();  // the bench process and its GPU
  absl::StatusOr<v1::worker::GpuFacts> Probe();
  // A kernel that loses the process is tried again: something else may have ended it.
  Result Measure(int kernel, Call::Part part, int attempts);
  absl::Status Blame(int kernel, const Result& result);

  const TimerParts parts_;
  const StoredProgram& program_;
  const Cancelled cancelled_;
  std::vector<Call> calls_;
  std::vector<Result> checks_;  // empty: they were done before
  std::string stop_;            // why no kernel, or none of those left, can be measured
  bool complete_ = false;
  int guilty_ = -1;
};

}  // namespace hackc::server
