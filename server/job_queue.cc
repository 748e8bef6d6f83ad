// SPDX-License-Identifier: MIT
#include "server/job_queue.h"

#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hackc::server {
namespace {
constexpr double kNewestWeight = 0.25;  // of the newest job in the mean duration
}  // namespace

JobQueue::JobQueue(std::string name, int threads, size_t limit)
    : name_(std::move(name)), thread_count_(threads), limit_(limit) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

JobQueue::~JobQueue() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

absl::StatusOr<uint64_t> JobQueue::Push(Job job) {
  uint64_t id;
  {
    std::lock_guard lock(mutex_);
    const size_t idle = thread_count_ - running_;
    if (jobs_.size() >= limit_ + idle) {
      const double seconds = mean_seconds_ * static_cast<double>(jobs_.size() + 1) /
                             static_cast<double>(thread_count_);
      return absl::ResourceExhaustedError(
          absl::StrCat("the ", name_, " queue is full: ", jobs_.size(), " waiting, limit ", limit_,
                       "; try again in ", static_cast<int64_t>(std::ceil(seconds)), " s"));
    }
    id = next_id_++;
    jobs_.emplace(id, std::move(job));
  }
  wake_.notify_one();
  return id;
}

bool JobQueue::Remove(uint64_t id) {
  Job removed;  // destroyed after the lock
  std::lock_guard lock(mutex_);
  auto found = jobs_.find(id);
  if (found == jobs_.end()) return false;
  removed = std::move(found->second);
  jobs_.erase(found);
  return true;
}

size_t JobQueue::waiting() const {
  std::lock_guard lock(mutex_);
  return jobs_.size();
}

size_t JobQueue::running() const {
  std::lock_guard lock(mutex_);
  return running_;
}

void JobQueue::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (stopping_) return;
    Job job = std::move(jobs_.begin()->second);
    jobs_.erase(jobs_.begin());
    ++running_;
    lock.unlock();
    const auto start = std::chrono::steady_clock::now();
    job();
    job = nullptr;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    lock.lock();
    --running_;
    mean_seconds_ += kNewestWeight * (took.count() - mean_seconds_);
  }
}

}  // namespace hackc::server
