// SPDX-License-Identifier: MIT
// N workers and the calls that wait for one, first come first served. A call that loses its worker
// is tried once more on a fresh one, unless that was for its time limit or nobody waits any more,
// then fails with INTERNAL naming the call and how the worker ended. With `attempts` 1 it is not,
// and keeps the worker's own status.
//
//   WorkerPool pool(2, [&] { return std::make_unique<InProcessWorker>(backend); });
//   pool.Submit({.request = request}, [](absl::StatusOr<v1::worker::Reply> reply) { ... });
//
// Each worker belongs to one thread of the pool for all its life, so a worker process dies with
// that thread (PR_SET_PDEATHSIG) and with nothing else. Calls are not bounded here: the job queue
// above bounds them. Thread safety: all functions may be called from any thread. Callbacks run on
// the pool's threads.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "hackc/v1/worker.pb.h"
#include "server/worker.h"

namespace hackc::server {

struct WorkerLimits {
  std::chrono::milliseconds describe{30'000};
  std::chrono::milliseconds plan{120'000};
  std::chrono::milliseconds kernel{120'000};
  std::chrono::milliseconds bench{30'000};
  int attempts = 2;
};

class WorkerPool {
 public:
  using Factory = std::function<std::unique_ptr<Worker>()>;
  // The reply's own status has been looked at: an error is the compiler's or the worker's.
  using Done = std::function<void(absl::StatusOr<v1::worker::Reply>)>;

  struct Call {
    v1::worker::Request request;
    // Asked before each attempt: true gives CANCELLED instead. May be null.
    std::function<bool()> cancelled;
  };

  // What a call that lost its workers ends with, in place of the status given.
  using LostCall = std::function<absl::Status(const v1::worker::Request&, const absl::Status&)>;

  WorkerPool(int workers, const Factory& factory, WorkerLimits limits = {},
             LostCall lost_call = {});
  ~WorkerPool();  // Stop(), then waits for the threads
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void Submit(Call call, Done done);
  absl::StatusOr<v1::worker::Reply> Run(Call call);  // blocks

  // Ends all calls with UNAVAILABLE, the running ones by interrupting their workers.
  void Stop();

  int size() const { return static_cast<int>(workers_.size()); }
  uint64_t lost() const { return lost_; }  // workers that crashed, hung or sent garbage

 private:
  struct Pending {
    Call call;
    Done done;
  };
  void Work(Worker& worker);
  absl::StatusOr<v1::worker::Reply> Try(Worker& worker, const Call& call);
  std::chrono::milliseconds LimitOf(const v1::worker::Request& request) const;

  const WorkerLimits limits_;
  const LostCall lost_call_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Pending> pending_;
  bool stopping_ = false;
  std::atomic<uint64_t> lost_{0};
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;
};

}  // namespace hackc::server
