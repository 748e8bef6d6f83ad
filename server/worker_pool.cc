// SPDX-License-Identifier: MIT
#include "server/worker_pool.h"

#include <future>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hackc::server {
namespace {

using v1::worker::Reply;
using v1::worker::Request;

std::string Describe(const Request& request) {
  switch (request.call_case()) {
    case Request::kPlan: return "planning the program";
    case Request::kKernel:
      return absl::StrCat("compiling kernel \"", request.kernel().kernel().name(), "\"");
    default: return "asking for the toolchain";
  }
}

}  // namespace

WorkerPool::WorkerPool(int workers, const Factory& factory, WorkerLimits limits, LostCall lost_call)
    : limits_(limits), lost_call_(std::move(lost_call)) {
  for (int i = 0; i < workers; ++i) workers_.push_back(factory());
  for (const std::unique_ptr<Worker>& worker : workers_) {
    threads_.emplace_back([this, &worker] { Work(*worker); });
  }
}

WorkerPool::~WorkerPool() {
  Stop();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::Submit(Call call, Done done) {
  {
    std::lock_guard lock(mutex_);
    if (!stopping_) {
      pending_.push_back({std::move(call), std::move(done)});
      wake_.notify_one();
      return;
    }
  }
  done(absl::UnavailableError("the server is stopping"));
}

absl::StatusOr<Reply> WorkerPool::Run(Call call) {
  std::promise<absl::StatusOr<Reply>> promise;
  std::future<absl::StatusOr<Reply>> future = promise.get_future();
  Submit(std::move(call),
         [&promise](absl::StatusOr<Reply> reply) { promise.set_value(std::move(reply)); });
  return future.get();
}

void WorkerPool::Stop() {
  std::deque<Pending> dropped;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(pending_);
  }
  wake_.notify_all();
  for (const std::unique_ptr<Worker>& worker : workers_) worker->Interrupt();
  for (Pending& pending : dropped) pending.done(absl::UnavailableError("the server is stopping"));
}

void WorkerPool::Work(Worker& worker) {
  // Starts the process and loads the compiler before anybody waits for it. What fails here fails
  // again, with somebody to tell, at the first call.
  Request describe;
  describe.mutable_describe();
  (void)Try(worker, describe);
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !pending_.empty(); });
    if (stopping_) return;
    Pending next = std::move(pending_.front());
    pending_.pop_front();
    lock.unlock();
    if (next.call.cancelled && next.call.cancelled()) {
      next.done(absl::CancelledError("nobody waits for this any more"));
    } else {
      next.done(Try(worker, next.call.request));
    }
    next = {};
    lock.lock();
  }
}

absl::StatusOr<Reply> WorkerPool::Try(Worker& worker, const Request& request) {
  const std::chrono::milliseconds limit = request.has_plan()     ? limits_.plan
                                          : request.has_kernel() ? limits_.kernel
                                          : request.has_bench()  ? limits_.bench
                                                                 : limits_.describe;
  absl::StatusOr<Reply> reply;
  for (int attempt = 0; attempt < limits_.attempts; ++attempt) {
    reply = worker.Call(request, limit);
    if (reply.ok()) {
      if (absl::Status status = StatusOf(*reply); !status.ok()) return status;
      return reply;
    }
    {
      std::lock_guard lock(mutex_);
      if (stopping_) return absl::UnavailableError("the server is stopping");
    }
    ++lost_;
  }
  if (limits_.attempts == 1) return reply.status();
  const absl::Status lost = absl::InternalError(
      absl::StrCat(Describe(request), ": the worker was lost, twice: ", reply.status().message()));
  return lost_call_ ? lost_call_(request, lost) : lost;
}

}  // namespace hackc::server
