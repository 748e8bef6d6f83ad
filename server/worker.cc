// SPDX-License-Identifier: MIT
#include "server/worker.h"

#include <exception>
#include <string>
#include <vector>

#include "compiler/support/status_macros.h"
#include "server/convert.h"

namespace hackc::server {
namespace {

using v1::worker::Reply;
using v1::worker::Request;

absl::Status Handle(CompilerBackend& backend, const Request& request, Reply* reply) {
  switch (request.call_case()) {
    case Request::kDescribe: {
      HACKC_ASSIGN_OR_RETURN(const std::string version, backend.NvrtcVersion());
      HACKC_ASSIGN_OR_RETURN(const std::vector<std::string> archs, backend.SupportedArchs());
      reply->mutable_toolchain()->set_nvrtc_version(version);
      reply->mutable_toolchain()->mutable_archs()->Assign(archs.begin(), archs.end());
      return absl::OkStatus();
    }
    case Request::kPlan: {
      HACKC_ASSIGN_OR_RETURN(const CompileRequest call, RequestFromProto(request.plan()));
      HACKC_ASSIGN_OR_RETURN(const Plan plan, backend.PlanProgram(call));
      *reply->mutable_plan() = ToProto(plan);
      return absl::OkStatus();
    }
    case Request::kKernel: {
      HACKC_ASSIGN_OR_RETURN(const KernelSource source, SourceFromProto(request.kernel()));
      HACKC_ASSIGN_OR_RETURN(const CompiledKernel kernel, backend.CompileKernel(source));
      *reply->mutable_kernel() = ToProto(kernel);
      return absl::OkStatus();
    }
    case Request::kReference: {
      HACKC_ASSIGN_OR_RETURN(
          const Reference reference,
          backend.ReferenceKernel(request.reference().loop(), request.reference().arch()));
      *reply->mutable_reference() = ToProto(reference);
      return absl::OkStatus();
    }
    default: break;
  }
  return absl::InternalError("a call that compile workers do not know");
}

}  // namespace

Reply HandleCall(CompilerBackend& backend, const Request& request) {
  Reply reply;
  absl::Status status;
  try {
    status = Handle(backend, request, &reply);
  } catch (const std::exception& error) {
    status = absl::InternalError(error.what());
  }
  if (!status.ok()) {
    reply.Clear();
    reply.set_code(status.raw_code());
    reply.set_message(std::string(status.message()));
  }
  return reply;
}

absl::Status StatusOf(const Reply& reply) {
  return absl::Status(static_cast<absl::StatusCode>(reply.code()), reply.message());
}

}  // namespace hackc::server
