// SPDX-License-Identifier: MIT
// Where compile calls run: a Worker takes one call at a time. In the daemon it is another process
// (worker_process.h); with --local and in tests it is this one.
//
//   InProcessWorker worker(backend);
//   ASSIGN(v1::worker::Reply reply, worker.Call(request, std::chrono::seconds(60)));
//
// An error from Call means that the worker itself was lost; what the compiler answers, errors
// included, is in the reply. Thread safety: Call from one thread at a time, Interrupt from any.
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "hackc/v1/worker.pb.h"
#include "server/backend.h"

namespace hackc::server {

class Worker {
 public:
  virtual ~Worker() = default;
  virtual absl::StatusOr<v1::worker::Reply> Call(const v1::worker::Request& request,
                                                 std::chrono::milliseconds limit) = 0;
  // Makes a running call, and every later one, end soon if that is possible.
  virtual void Interrupt() = 0;
};

// Runs the call on the backend, in this thread. Exceptions become INTERNAL.
v1::worker::Reply HandleCall(CompilerBackend& backend, const v1::worker::Request& request);

// A call in this process can be neither limited nor interrupted.
class InProcessWorker : public Worker {
 public:
  explicit InProcessWorker(std::shared_ptr<CompilerBackend> backend)
      : backend_(std::move(backend)) {}
  absl::StatusOr<v1::worker::Reply> Call(const v1::worker::Request& request,
                                         std::chrono::milliseconds) override {
    return HandleCall(*backend_, request);
  }
  void Interrupt() override {}

 private:
  std::shared_ptr<CompilerBackend> backend_;
};

// The status that a reply carries.
absl::Status StatusOf(const v1::worker::Reply& reply);

}  // namespace hackc::server
