// SPDX-License-Identifier: MIT
#include "tests/client/fake_service.h"

#include "client/runtime/digest.h"
#include "tests/client/tiny_program.h"

namespace hackc::client {

FakeService::FakeService() {
  grpc::ServerBuilder builder;
  int port = 0;
  // As the server does it: a port is one process's.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  address_ = "127.0.0.1:" + std::to_string(port);
}

FakeService::~FakeService() { server_->Shutdown(); }

grpc::Status FakeService::Compile(grpc::ServerContext*, const v1::CompileRequest* request,
                                  grpc::ServerWriter<v1::CompileEvent>* writer) {
  compile_request = *request;
  // A client that has gone away leaves this running while the test writes down the next answer.
  const std::vector<v1::CompileEvent> answer = events;
  const grpc::Status end = status;
  for (const v1::CompileEvent& event : answer) {
    if (!writer->Write(event)) return grpc::Status(grpc::StatusCode::CANCELLED, "gone");
  }
  return end;
}

grpc::Status FakeService::Fetch(grpc::ServerContext*, const v1::FetchRequest* request,
                                grpc::ServerWriter<v1::Blob>* writer) {
  for (const std::string& digest : request->digests()) {
    auto found = blobs.find(digest);
    if (found == blobs.end())
      return grpc::Status(grpc::StatusCode::NOT_FOUND, digest + " is not stored");
    v1::Blob blob;
    blob.set_digest(digest);
    blob.set_data(found->second);
    writer->Write(blob);
  }
  return status;
}

grpc::Status FakeService::Explain(grpc::ServerContext*, const v1::ExplainRequest* request,
                                  v1::ExplainResponse* response) {
  explain_request = *request;
  *response = explain_response;
  return status;
}

grpc::Status FakeService::ExplainKey(grpc::ServerContext*, const v1::ExplainKeyRequest*,
                                     v1::ExplainKeyResponse* response) {
  *response = explain_key_response;
  return status;
}

grpc::Status FakeService::Status(grpc::ServerContext*, const v1::StatusRequest*,
                                 v1::StatusResponse* response) {
  *response = status_response;
  return status;
}

std::vector<v1::CompileEvent> TinyEvents() {
  v1::Program program = TinyProgram();
  std::vector<v1::CompileEvent> events;
  v1::Progress* progress = events.emplace_back().mutable_progress();
  progress->set_stage("compile");
  progress->set_done(2);
  progress->set_total(5);
  // Not in the program's order, as kernels come when they are ready.
  for (int i : {kHead, kDouble, kLayer, kCopy, kEmbed}) {
    v1::KernelReady* ready = events.emplace_back().mutable_kernel();
    *ready->mutable_kernel() = program.kernels(i);
    ready->set_hit(i == kHead);
    ready->set_cubin(program.kernels(i).entry());
    for (const auto& [stage, time] : {std::pair("tile", 2.5), {"kernel", 1.0}, {"nvrtc", 250.0}}) {
      v1::StageTime* stage_time = ready->add_times();
      stage_time->set_stage(stage);
      stage_time->set_milliseconds(ready->hit() ? 0 : time);
    }
    for (const char* level : {"loop", "tile", "kernel", "cuda"}) {
      (*ready->mutable_ir())[level] =
          std::string(level) + " of " + program.kernels(i).name() + "\n";
    }
  }
  v1::ProgramReady* ready = events.emplace_back().mutable_program();
  *ready->mutable_program() = program;
  ready->set_bytes(program.SerializeAsString());
  ready->set_digest(Sha256Digest(ready->bytes()));
  v1::Report* report = events.emplace_back().mutable_report();
  report->set_compile_ms(1234.5);
  report->set_hits(1);
  report->set_misses(4);
  v1::StageTime* time = report->add_times();
  time->set_stage("frontend");
  time->set_milliseconds(3.25);
  (*report->mutable_ir())["graph"] = "the graph\n";
  (*report->mutable_ir())["tensor"] = "the tensors\n";
  return events;
}

}  // namespace hackc::client
