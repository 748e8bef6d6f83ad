// SPDX-License-Identifier: MIT
// The calls of a bench process: what the GPU is, and one kernel's check and times.
//
//   return ServeCalls(fd, "hackc-bench", BenchHandler(/*gpu=*/0));   // worker_process.h
//
// The context is made at the first call and kept. After a kernel at fault the reply says that it
// was the last:
// whatever the kernel did to this process ends with it.
// Thread safety: the handler belongs to one thread.
#pragma once

#include <memory>

#include "hackc/v1/worker.pb.h"
#include "server/bench/bench_device.h"

namespace hackc::server {

class BenchHandler {
 public:
  explicit BenchHandler(int gpu) : gpu_(gpu) {}
  v1::worker::Reply operator()(const v1::worker::Request& request);

 private:
  absl::Status Handle(const v1::worker::Request& request, v1::worker::Reply* reply);

  const int gpu_;
  std::shared_ptr<BenchDevice> device_;
};

}  // namespace hackc::server
