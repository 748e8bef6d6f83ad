// SPDX-License-Identifier: MIT
// A compile server whose answers a test writes down: the events of a compile, statuses, blobs.
//
//   FakeService service;
//   service.events = TinyEvents();
//   RunCli({"submit", model, "--server", service.address()}, out, err, {});
//   EXPECT_EQ(service.compile_request.target().arch(), "sm_90a");
//
// Thread safety: set it up before the call and read it after.
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hackc/v1/compiler.grpc.pb.h"

namespace hackc::client {

class FakeService final : public v1::Compiler::Service {
 public:
  FakeService();
  ~FakeService() override;
  const std::string& address() const { return address_; }

  std::vector<v1::CompileEvent> events;
  grpc::Status status;                       // of every call
  std::map<std::string, std::string> blobs;  // by the digest under which they are sent
  v1::ExplainResponse explain_response;
  v1::ExplainKeyResponse explain_key_response;
  v1::StatusResponse status_response;

  v1::CompileRequest compile_request;
  v1::ExplainRequest explain_request;

 private:
  grpc::Status Compile(grpc::ServerContext*, const v1::CompileRequest* request,
                       grpc::ServerWriter<v1::CompileEvent>* writer) override;
  grpc::Status Fetch(grpc::ServerContext*, const v1::FetchRequest* request,
                     grpc::ServerWriter<v1::Blob>* writer) override;
  grpc::Status Explain(grpc::ServerContext*, const v1::ExplainRequest* request,
                       v1::ExplainResponse* response) override;
  grpc::Status ExplainKey(grpc::ServerContext*, const v1::ExplainKeyRequest* request,
                          v1::ExplainKeyResponse* response) override;
  grpc::Status Status(grpc::ServerContext*, const v1::StatusRequest*,
                      v1::StatusResponse* response) override;

  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

// What a server sends for TinyProgram: progress, five kernels (the last from the cache), program,
// report.
std::vector<v1::CompileEvent> TinyEvents();

}  // namespace hackc::client
