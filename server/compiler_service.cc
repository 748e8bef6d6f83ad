// SPDX-License-Identifier: MIT
#include "server/compiler_service.h"

#include <memory>
#include <optional>
#include <utility>

#include "server/status_conversion.h"

namespace hackc::server {
namespace {

// Deleted by gRPC's last call, OnDone.
class CompileReactor : public grpc::ServerWriteReactor<v1::CompileEvent> {
 public:
  CompileReactor(Engine& engine, const v1::CompileRequest& request)
      : stream_(engine.Submit(request)) {
    Advance();
  }
  void OnWriteDone(bool ok) override {
    if (!ok) stream_->Cancel();
    Advance();
  }
  void OnCancel() override { stream_->Cancel(); }
  void OnDone() override { delete this; }

 private:
  // Writes the next event, or finishes, or comes back when there is something to do. After each of
  // these this object may be gone.
  void Advance() {
    const std::shared_ptr<EventStream> stream = stream_;
    if (std::optional<v1::CompileEvent> event = stream->Next()) {
      event_ = *std::move(event);
      StartWrite(&event_);
    } else if (stream->ended()) {
      Finish(ToGrpc(stream->status()));
    } else {
      stream->OnReady([this] { Advance(); });
    }
  }

  const std::shared_ptr<EventStream> stream_;
  v1::CompileEvent event_;
};

class FetchReactor : public grpc::ServerWriteReactor<v1::Blob> {
 public:
  FetchReactor(Engine& engine, const v1::FetchRequest& request)
      : engine_(engine), request_(request) {
    Advance();
  }
  void OnWriteDone(bool ok) override {
    if (ok) {
      Advance();
    } else {
      Finish(grpc::Status(grpc::CANCELLED, "the caller cancelled"));
    }
  }
  void OnDone() override { delete this; }

 private:
  void Advance() {
    if (next_ == request_.digests_size()) return Finish(grpc::Status::OK);
    absl::StatusOr<v1::Blob> blob = engine_.Fetch(request_.digests(next_++));
    if (!blob.ok()) return Finish(ToGrpc(blob.status()));
    blob_ = *std::move(blob);
    StartWrite(&blob_);
  }

  Engine& engine_;
  const v1::FetchRequest request_;
  int next_ = 0;
  v1::Blob blob_;
};

// What a blocking call of the engine gives, as the answer of a unary call.
template <typename Response>
void Answer(grpc::ServerUnaryReactor* reactor, absl::StatusOr<Response> result,
            Response* response) {
  const absl::Status status = result.status();
  if (result.ok()) *response = *std::move(result);
  reactor->Finish(ToGrpc(status));
}

}  // namespace

grpc::ServerWriteReactor<v1::CompileEvent>* CompilerService::Compile(
    grpc::CallbackServerContext*, const v1::CompileRequest* request) {
  return new CompileReactor(engine_, *request);
}

grpc::ServerWriteReactor<v1::Blob>* CompilerService::Fetch(grpc::CallbackServerContext*,
                                                           const v1::FetchRequest* request) {
  return new FetchReactor(engine_, *request);
}

grpc::ServerUnaryReactor* CompilerService::Explain(grpc::CallbackServerContext* context,
                                                   const v1::ExplainRequest* request,
                                                   v1::ExplainResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const absl::Status queued = engine_.RunOnJobs(
      [this, reactor, request, response] { Answer(reactor, engine_.Explain(*request), response); });
  if (!queued.ok()) reactor->Finish(ToGrpc(queued));
  return reactor;
}

grpc::ServerUnaryReactor* CompilerService::ExplainKey(grpc::CallbackServerContext* context,
                                                      const v1::ExplainKeyRequest* request,
                                                      v1::ExplainKeyResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const absl::Status queued = engine_.RunOnFront([this, reactor, request, response] {
    Answer(reactor, engine_.ExplainKey(*request), response);
  });
  if (!queued.ok()) reactor->Finish(ToGrpc(queued));
  return reactor;
}

grpc::ServerUnaryReactor* CompilerService::Status(grpc::CallbackServerContext* context,
                                                  const v1::StatusRequest*,
                                                  v1::StatusResponse* response) {
  *response = engine_.Status();
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace hackc::server
