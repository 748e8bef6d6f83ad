// SPDX-License-Identifier: MIT
// The gRPC service: a thin layer over the engine, with the callback API. It decides nothing.
//
//   CompilerService service(engine);
//   builder.RegisterService(&service);
//
// One write is in flight per stream, and the next event is taken only when it is done, so a slow
// client holds a cursor and one event. A client that leaves cancels its stream.
// Thread safety: gRPC calls it from its own threads.
#pragma once

#include <grpcpp/support/server_callback.h>

#include "hackc/v1/compiler.grpc.pb.h"
#include "server/engine.h"

namespace hackc::server {

class CompilerService : public v1::Compiler::CallbackService {
 public:
  explicit CompilerService(Engine& engine) : engine_(engine) {}

  grpc::ServerWriteReactor<v1::CompileEvent>* Compile(grpc::CallbackServerContext* context,
                                                      const v1::CompileRequest* request) override;
  grpc::ServerWriteReactor<v1::Blob>* Fetch(grpc::CallbackServerContext* context,
                                            const v1::FetchRequest* request) override;
  grpc::ServerUnaryReactor* Explain(grpc::CallbackServerContext* context,
                                    const v1::ExplainRequest* request,
                                    v1::ExplainResponse* response) override;
  grpc::ServerUnaryReactor* ExplainKey(grpc::CallbackServerContext* context,
                                       const v1::ExplainKeyRequest* request,
                                       v1::ExplainKeyResponse* response) override;
  grpc::ServerUnaryReactor* Status(grpc::CallbackServerContext* context,
                                   const v1::StatusRequest* request,
                                   v1::StatusResponse* response) override;

 private:
  Engine& engine_;
};

}  // namespace hackc::server
