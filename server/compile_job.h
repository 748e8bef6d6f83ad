// SPDX-License-Identifier: MIT
// One build of a program, for all who ask for its key: plan on a worker, then every kernel from the
// store or from the workers, then the program into the store. Events go to the job's log as they
// happen; the report is the last, and whoever times the program comes in between. With a GPU no
// kernel goes out, and no program into the store, before all of them have passed their check there.
//
//   auto job = std::make_shared<CompileJob>(key, name, call);
//   absl::Status status = job->Run(context);   // on a thread of the job queue; blocks
//   if (status.ok()) job->AppendReport(timing_json);
//   job->log()->Finish(status);
//
// Thread safety: Run once, from one thread; the rest from any.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "cache/key.h"
#include "hackc/v1/worker.pb.h"
#include "server/artifacts.h"
#include "server/event_log.h"
#include "server/kernel_builder.h"
#include "server/metrics.h"
#include "server/program_timer.h"
#include "server/worker_pool.h"

namespace hackc::server {

// What jobs work with; outlives them.
struct JobContext {
  Artifacts& artifacts;
  KernelBuilder& kernels;
  WorkerPool& pool;
  Metrics& metrics;
  std::string nvrtc_version;
  // With a GPU: what a ProgramTimer works with, and the device in the keys of what it finds.
  std::optional<TimerParts> timer;
  std::string device;
};

class CompileJob {
 public:
  CompileJob(cache::Key key, std::string name, v1::worker::PlanCall call)
      : key_(std::move(key)), name_(std::move(name)), call_(std::move(call)) {}

  const cache::Key& key() const { return key_; }
  const std::shared_ptr<EventLog>& log() const { return log_; }

  // Stops at the next kernel; what is compiled is in the store by then.
  void Cancel() { cancelled_ = true; }
  absl::Status Run(const JobContext& context);
  bool cancelled() const { return cancelled_; }

  // After a Run that went well.
  const StoredProgram& program() const { return program_; }
  void AppendReport(std::string timing_json);
  // Times the checked program and keeps what it finds. INTERNAL: a kernel failed all the same.
  absl::Status TimeProgram(const JobContext& context);

 private:
  bool IsChecked(const JobContext& context) const;  // the GPU can run it
  absl::Status Check(const JobContext& context);
  void Forget(const JobContext& context, int kernel);
  absl::Status BuildKernels(const JobContext& context, v1::worker::PlanResult& plan,
                            StoredProgram& program, v1::Report& report);

  const cache::Key key_;
  const std::string name_;
  const v1::worker::PlanCall call_;
  const std::shared_ptr<EventLog> log_ = std::make_shared<EventLog>();
  std::atomic<bool> cancelled_{false};
  StoredProgram program_;
  v1::Report report_;
  std::vector<LogEntry> held_;  // kernels that wait for the check
  std::unique_ptr<ProgramTimer> timer_;
};

// The events of a program that is all in the store, but for the report, which is returned.
v1::Report AppendStored(const StoredProgram& program, EventLog& log);
void AppendReport(const StoredProgram& program, v1::Report report, EventLog& log);

void AppendProgress(EventLog& log, std::string stage, uint32_t done, uint32_t total,
                    std::string detail = "");

}  // namespace hackc::server
