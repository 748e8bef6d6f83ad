// SPDX-License-Identifier: MIT
#include "server/compiler_service.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
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
      : engine_(engine), request_(request), open_(engine.OpenCall()) {
    if (open_.ok()) {
      Advance();
    } else {
      Finish(ToGrpc(open_.status()));
    }
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
  const absl::StatusOr<std::shared_ptr<void>> open_;
  int next_ = 0;
  v1::Blob blob_;
};

// The answer of a unary call that blocks in the engine. A caller that has gone leaves the queue.
template <typename Response>
class CallReactor : public grpc::ServerUnaryReactor {
 public:
  using Call = std::function<absl::StatusOr<Response>(const std::function<bool()>& cancelled)>;
  using Queue = absl::StatusOr<Engine::Remover> (Engine::*)(std::function<void()>);

  CallReactor(Engine& engine, Queue queue, Call call, Response* response)
      : call_(std::move(call)), response_(response) {
    absl::StatusOr<Engine::Remover> queued = (engine.*queue)([this] { Run(); });
    // From here on Run may have finished the call, but OnDone comes after this constructor.
    if (!queued.ok()) {
      Finish(ToGrpc(queued.status()));
      return;
    }
    bool gone;
    {
      std::lock_guard lock(mutex_);
      remove_ = *std::move(queued);
      gone = cancelled_;
    }
    if (gone) Leave();
  }
  void OnCancel() override {
    {
      std::lock_guard lock(mutex_);
      cancelled_ = true;
      if (!remove_) return;  // the constructor comes to it
    }
    Leave();
  }
  void OnDone() override { delete this; }

 private:
  void Leave() {
    if (remove_()) Finish(Gone());
  }
  void Run() {
    if (cancelled_) return Finish(Gone());
    absl::StatusOr<Response> result = call_([this] { return cancelled_.load(); });
    const absl::Status status = result.status();
    if (result.ok()) *response_ = *std::move(result);
    Finish(ToGrpc(status));
  }
  static grpc::Status Gone() { return grpc::Status(grpc::CANCELLED, "the caller cancelled"); }

  const Call call_;
  Response* const response_;
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  Engine::Remover remove_;
};

}  // namespace

grpc::ServerWriteReactor<v1::CompileEvent>* CompilerService::Compile(
    grpc::CallbackServerContext*, const v1::CompileRequest* request) {
  return new CompileReactor(engine_, *request);
}

grpc::ServerWriteReactor<v1::Blob>* CompilerService::Fetch(grpc::CallbackServerContext*,
                                                           const v1::FetchRequest* request) {
  return new FetchReactor(engine_, *request);
}

grpc::ServerUnaryReactor* CompilerService::Explain(grpc::CallbackServerContext*,
                                                   const v1::ExplainRequest* request,
                                                   v1::ExplainResponse* response) {
  return new CallReactor<v1::ExplainResponse>(
      engine_, &Engine::RunOnJobs,
      [this, request](const auto& cancelled) { return engine_.Explain(*request, cancelled); },
      response);
}

grpc::ServerUnaryReactor* CompilerService::ExplainKey(grpc::CallbackServerContext*,
                                                      const v1::ExplainKeyRequest* request,
                                                      v1::ExplainKeyResponse* response) {
  return new CallReactor<v1::ExplainKeyResponse>(
      engine_, &Engine::RunOnFront,
      [this, request](const auto&) { return engine_.ExplainKey(*request); }, response);
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
