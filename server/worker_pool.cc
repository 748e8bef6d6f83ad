// SPDX-License-Identifier: MIT
#include "server/worker_pool.h"

#include <future>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/log.h"

namespace hackc::server {
namespace {

using v1::worker::Reply;
using v1::worker::Request;

std::string Describe(const Request& request) {
  switch (request.call_case()) {
    case Request::kPlan: return "planning the program";
    case Request::kKernel:
      return absl::StrCat("compiling kernel \"", request.kernel().kernel().name(), "\"");
    case Request::kReference:
      return absl::StrCat("making the reference of kernel \"", request.reference().name(), "\"");
    case Request::kBench:
      return absl::StrCat("measuring kernel \"", request.bench().kernel().name(), "\"");
    case Request::kProbe: return "asking what the GPU is";
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
  (void)Try(worker, {.request = std::move(describe)});
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
      next.done(Try(worker, next.call));
    }
    next = {};
    lock.lock();
  }
}

std::chrono::milliseconds WorkerPool::LimitOf(const Request& request) const {
  switch (request.call_case()) {
    case Request::kPlan:
    case Request::kReference: return limits_.plan;  // passes, both
    case Request::kKernel: return limits_.kernel;
    case Request::kBench: return limits_.bench;
    default: return limits_.describe;
  }
}

absl::StatusOr<Reply> WorkerPool::Try(Worker& worker, const Call& call) {
  const Request& request = call.request;
  absl::StatusOr<Reply> reply;
  int attempt = 0;
  do {
    reply = worker.Call(request, LimitOf(request));
    if (reply.ok()) {
      if (absl::Status status = StatusOf(*reply); !status.ok()) return status;
      return reply;
    }
    {
      std::lock_guard lock(mutex_);
      if (stopping_) return absl::UnavailableError("the server is stopping");
    }
    ++lost_;
    Log().warn("a worker was lost while {}: {}", Describe(request),
               std::string(reply.status().message()));
    if (call.cancelled && call.cancelled()) {
      return absl::CancelledError("nobody waits for this any more");
    }
    // What took so long once takes as long again.
  } while (++attempt < limits_.attempts && !absl::IsDeadlineExceeded(reply.status()));
  if (limits_.attempts == 1) return reply.status();
  const absl::Status lost = absl::InternalError(
      absl::StrCat(Describe(request), ": the worker was lost", attempt > 1 ? ", twice" : "", ": ",
                   reply.status().message()));
  return lost_call_ ? lost_call_(request, lost) : lost;
}

}  // namespace hackc::server
