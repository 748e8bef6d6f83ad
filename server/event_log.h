// SPDX-License-Identifier: MIT
// The events of one build, kept until the last reader is done, and the cursors that readers hold.
// What is heavy (cubins, IR texts) is kept beside its event once, and added to a reader's copy only
// when that reader asked for it.
//
//   auto log = std::make_shared<EventLog>();
//   auto stream = std::make_shared<LogStream>(options);  // may exist before its build does
//   stream->Attach(log, /*detach=*/[] { ... });
//   log->Append({.event = event, .cubin = cubin});
//   log->Finish(absl::OkStatus());
//
// Thread safety: EventLog is safe from any thread; LogStream as EventStream says. Callbacks are
// called without a lock held.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "hackc/v1/compiler.pb.h"
#include "hackc/v1/stored.pb.h"
#include "server/event_stream.h"

namespace hackc::server {

struct LogEntry {
  v1::CompileEvent event;
  std::shared_ptr<const std::string> cubin;     // for KernelReady
  std::shared_ptr<const v1::stored::Texts> ir;  // for KernelReady and Report
};

class EventLog {
 public:
  void Append(LogEntry entry);
  // The first status stays.
  void Finish(absl::Status status);

  // The entry at `index`, or null when there is none yet. Entries never change or move.
  std::shared_ptr<const LogEntry> Get(size_t index) const;
  // The final status once there is no entry at `index` and never will be.
  std::optional<absl::Status> EndAt(size_t index) const;
  int kernels() const;  // so far

  // Calls `ready` once Get or EndAt has an answer for `index`, at once when it has.
  void WhenReady(size_t index, std::function<void()> ready);

 private:
  void Wake();

  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const LogEntry>> entries_;
  std::optional<absl::Status> status_;
  std::vector<std::function<void()>> waiting_;
};

class LogStream;

struct LogStreamOptions {
  bool with_ir = false;
  bool with_cubins = false;
};

class LogStream : public EventStream, public std::enable_shared_from_this<LogStream> {
 public:
  explicit LogStream(LogStreamOptions options) : options_(std::move(options)) {}
  ~LogStream() override { Leave(); }

  // `detach` is called once, when the reader cancels or is gone.
  void Attach(const std::shared_ptr<EventLog>& log, std::function<void()> detach);
  // Ends the stream, with whatever was not yet read left out. The first end stays.
  void End(absl::Status status);
  // The reader has gone: detaches and calls nobody. An engine thread may still hold the stream.
  void Leave();

  void OnReady(std::function<void()> ready) override;
  std::optional<v1::CompileEvent> Next() override;
  bool ended() const override;
  absl::Status status() const override;
  void Cancel() override { End(absl::CancelledError("the caller cancelled")); }

 private:
  std::optional<absl::Status> EndLocked() const;
  void WaitFor(EventLog& log, size_t index);
  void FireReady();

  const LogStreamOptions options_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;
  std::shared_ptr<EventLog> log_;
  std::function<void()> detach_;
  std::function<void()> ready_;
  std::optional<absl::Status> end_;
  size_t index_ = 0;
};

}  // namespace hackc::server
