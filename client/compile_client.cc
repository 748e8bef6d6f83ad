// SPDX-License-Identifier: MIT
#include "client/compile_client.h"

#include <grpcpp/grpcpp.h>

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/runtime/digest.h"
#include "compiler/support/status_macros.h"
#include "hackc/v1/compiler.grpc.pb.h"

namespace hackc::client {

using std::chrono::system_clock;

struct CompileClient::Impl {
  std::string address;
  ConnectOptions options;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Compiler::Stub> stub;

  void Prepare(grpc::ClientContext* context) const {
    if (options.call_deadline.count() > 0) {
      context->set_deadline(system_clock::now() + options.call_deadline);
    }
  }

  // gRPC's codes are Abseil's. Only a connection's failure needs the address added.
  absl::Status Convert(const grpc::Status& status) const {
    if (status.ok()) return absl::OkStatus();
    auto code = static_cast<absl::StatusCode>(status.error_code());
    if (code == absl::StatusCode::kUnavailable) {
      return absl::UnavailableError(
          absl::StrCat("server at ", address, ": ", status.error_message()));
    }
    return absl::Status(code, status.error_message());
  }

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (v1::Compiler::Stub::*method)(grpc::ClientContext*,
                                                                           const Request&,
                                                                           Response*),
                                const Request& request) {
    grpc::ClientContext context;
    Prepare(&context);
    Response response;
    HACKC_RETURN_IF_ERROR(Convert((stub.get()->*method)(&context, request, &response)));
    return response;
  }
};

namespace {

// Waits until the channel is connected or has failed; a failure's reason comes with the first call.
bool WaitForAnswer(grpc::Channel& channel, system_clock::time_point deadline) {
  grpc_connectivity_state state = channel.GetState(/*try_to_connect=*/true);
  while (state != GRPC_CHANNEL_READY && state != GRPC_CHANNEL_TRANSIENT_FAILURE &&
         state != GRPC_CHANNEL_SHUTDOWN) {
    if (!channel.WaitForStateChange(state, deadline)) return false;
    state = channel.GetState(true);
  }
  return true;
}

}  // namespace

CompileClient::CompileClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CompileClient::~CompileClient() = default;

absl::StatusOr<std::unique_ptr<CompileClient>> CompileClient::Connect(
    const std::string& address, const ConnectOptions& options) {
  grpc::ChannelArguments arguments;
  // A program with large constants exceeds gRPC's default of 4 MiB.
  arguments.SetMaxReceiveMessageSize(512 << 20);
  // The server is named explicitly; a proxy for the web must not come between.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Channels share connections, and how long to wait before the next try, unless told not to.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  auto impl = std::make_unique<Impl>();
  impl->address = address;
  impl->options = options;
  // Twice: gRPC 1.51 reads errno some calls after connect, and what a process does once may change
  // it between: Abseil's search for the processor's frequency at the first lock that a thread waits
  // for, and, where /sys is not mounted, glibc's for processors.
  const auto deadline = system_clock::now() + options.timeout;
  for (int attempt = 0; attempt < 2; ++attempt) {
    impl->channel =
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
    if (!WaitForAnswer(*impl->channel, deadline)) {
      return absl::UnavailableError(absl::StrCat("server at ", address, ": no answer within ",
                                                 options.timeout.count(), " ms"));
    }
    if (impl->channel->GetState(false) == GRPC_CHANNEL_READY) break;
  }
  impl->stub = v1::Compiler::NewStub(impl->channel);
  return std::unique_ptr<CompileClient>(new CompileClient(std::move(impl)));
}

absl::Status CompileClient::Compile(const v1::CompileRequest& request,
                                    const EventCallback& on_event) {
  grpc::ClientContext context;
  impl_->Prepare(&context);
  StreamVerifier verifier(request);
  absl::Status received = absl::OkStatus();
  auto reader = impl_->stub->Compile(&context, request);
  v1::CompileEvent event;
  while (reader->Read(&event)) {
    if (!received.ok()) continue;  // drains what was on its way before the cancellation
    received = verifier.Check(event);
    if (!received.ok()) {
      context.TryCancel();
    } else if (on_event) {
      on_event(event);
    }
  }
  grpc::Status status = reader->Finish();
  HACKC_RETURN_IF_ERROR(received);
  HACKC_RETURN_IF_ERROR(impl_->Convert(status));
  return verifier.Finish();
}

absl::StatusOr<std::vector<v1::Blob>> CompileClient::Fetch(
    const std::vector<std::string>& digests) {
  v1::FetchRequest request;
  for (const std::string& digest : digests) request.add_digests(digest);
  grpc::ClientContext context;
  impl_->Prepare(&context);
  auto reader = impl_->stub->Fetch(&context, request);
  std::map<std::string, v1::Blob> blobs;
  absl::Status received = absl::OkStatus();
  v1::Blob blob;
  while (reader->Read(&blob)) {
    if (!received.ok()) continue;
    received = VerifyDigest(blob.digest(), blob.data(), "blob");
    if (!received.ok()) {
      context.TryCancel();
    } else {
      std::string digest = blob.digest();
      blobs[digest] = std::move(blob);
    }
  }
  grpc::Status status = reader->Finish();
  HACKC_RETURN_IF_ERROR(received);
  HACKC_RETURN_IF_ERROR(impl_->Convert(status));
  std::vector<v1::Blob> ordered;
  for (const std::string& digest : digests) {
    auto found = blobs.find(digest);
    if (found == blobs.end()) {
      return absl::InternalError(absl::StrCat("the answer ended without ", digest));
    }
    ordered.push_back(found->second);
  }
  return ordered;
}

absl::StatusOr<v1::ExplainResponse> CompileClient::Explain(const v1::ExplainRequest& request) {
  return impl_->Call(&v1::Compiler::Stub::Explain, request);
}

absl::StatusOr<v1::ExplainKeyResponse> CompileClient::ExplainKey(
    const v1::ExplainKeyRequest& request) {
  return impl_->Call(&v1::Compiler::Stub::ExplainKey, request);
}

absl::StatusOr<v1::StatusResponse> CompileClient::Status() {
  return impl_->Call(&v1::Compiler::Stub::Status, v1::StatusRequest());
}

}  // namespace hackc::client
