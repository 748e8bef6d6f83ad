// SPDX-License-Identifier: MIT
#include "server/bench/bench_handler.h"

#include <exception>
#include <string>
#include <utility>

#include "compiler/support/status_macros.h"
#include "server/bench/kernel_bench.h"

namespace hackc::server {

using v1::worker::Reply;
using v1::worker::Request;

absl::Status BenchHandler::Handle(const Request& request, Reply* reply) {
  if (!device_) {
    HACKC_ASSIGN_OR_RETURN(device_, BenchDevice::Open(gpu_));
  }
  switch (request.call_case()) {
    case Request::kDescribe:
      return device_->Synchronize();  // the context is there and sound, which is all it asks for
    case Request::kProbe: {
      HACKC_ASSIGN_OR_RETURN(const double rate, device_->CopyRate());
      v1::worker::GpuFacts* facts = reply->mutable_gpu();
      facts->set_name(device_->name());
      facts->set_l2_bytes(device_->l2_bytes());
      facts->set_copy_bytes_per_second(rate);
      return absl::OkStatus();
    }
    case Request::kBench: {
      *reply->mutable_bench() = KernelBench(*device_, request.bench()).Run();
      reply->set_last(reply->bench().fault() != v1::worker::NONE);
      return absl::OkStatus();
    }
    default: return absl::InternalError("a call that bench processes do not know");
  }
}

Reply BenchHandler::operator()(const Request& request) {
  Reply reply;
  absl::Status status;
  try {
    status = Handle(request, &reply);
  } catch (const std::exception& error) {
    status = absl::InternalError(error.what());
  }
  if (!status.ok()) {
    reply.Clear();
    reply.set_code(status.raw_code());
    reply.set_message(std::string(status.message()));
    reply.set_last(true);  // a driver that failed once may work in a fresh process
  }
  return reply;
}

}  // namespace hackc::server
