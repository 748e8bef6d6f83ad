// SPDX-License-Identifier: MIT
// A bounded queue of jobs and the threads that run them, first come first served.
//
//   JobQueue queue("compile", /*threads=*/2, /*limit=*/64);
//   ASSIGN(uint64_t id, queue.Push([] { ... }));  // RESOURCE_EXHAUSTED when full
//   queue.Remove(id);                              // true: it will never run
//
// Thread safety: all functions may be called from any thread; the destructor lets running jobs end
// and drops the rest, so whoever waits for a job must have cancelled it before.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"

namespace hackc::server {

class JobQueue {
 public:
  using Job = std::function<void()>;

  JobQueue(std::string name, int threads, size_t limit);
  ~JobQueue();

  // `limit` jobs may wait, besides one for each thread that has nothing to do.
  absl::StatusOr<uint64_t> Push(Job job);
  bool Remove(uint64_t id);

  size_t waiting() const;
  size_t running() const;

 private:
  void Work();

  const std::string name_;
  const size_t thread_count_;
  const size_t limit_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::map<uint64_t, Job> jobs_;  // by id, which is the order of arrival
  uint64_t next_id_ = 0;
  size_t running_ = 0;
  double mean_seconds_ = 1;  // of late, for the time to come back
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace hackc::server
