// SPDX-License-Identifier: MIT
// The compile server over gRPC, with a bounded wait for the connection and none for the answer: a
// long compile that reports progress is healthy, and its deadline is the caller's choice.
//
//   auto client = CompileClient::Connect("127.0.0.1:7070");
//   absl::Status status = (*client)->Compile(request, [](const v1::CompileEvent& event) { ... });
//
// Statuses are the server's, with their code. UNAVAILABLE names the address when no server answers,
// and DATA_LOSS what was received with bytes that are not those of its digest.
// Thread safety: one call at a time on one object.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "client/compiler_api.h"

namespace hackc::client {

struct ConnectOptions {
  // A refused connection fails at once; this bounds a server that never answers.
  std::chrono::milliseconds timeout{5000};
  // Zero: no limit. Else a deadline for each call.
  std::chrono::milliseconds call_deadline{0};
};

class CompileClient : public CompilerApi {
 public:
  // `address` is what gRPC takes: "host:port", "unix:/path".
  static absl::StatusOr<std::unique_ptr<CompileClient>> Connect(const std::string& address,
                                                                const ConnectOptions& options = {});
  ~CompileClient() override;

  absl::Status Compile(const v1::CompileRequest& request, const EventCallback& on_event) override;
  absl::StatusOr<std::vector<v1::Blob>> Fetch(const std::vector<std::string>& digests) override;
  absl::StatusOr<v1::ExplainResponse> Explain(const v1::ExplainRequest& request) override;
  absl::StatusOr<v1::ExplainKeyResponse> ExplainKey(const v1::ExplainKeyRequest& request) override;
  absl::StatusOr<v1::StatusResponse> Status() override;

 private:
  struct Impl;
  explicit CompileClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hackc::client
