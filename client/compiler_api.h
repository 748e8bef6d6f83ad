// SPDX-License-Identifier: MIT
// What a compiler offers to clients, wherever it runs: behind a socket (compile_client.h) or in
// this process (cli/local_compiler.h). Digests of everything received are verified by both.
//
//   HACKC_RETURN_IF_ERROR(compiler.Compile(request, [](const v1::CompileEvent& event) { ... }));
//
// Thread safety: one call at a time on one object.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hackc/v1/compiler.pb.h"

namespace hackc::client {

class CompilerApi {
 public:
  virtual ~CompilerApi() = default;

  using EventCallback = std::function<void(const v1::CompileEvent&)>;
  virtual absl::Status Compile(const v1::CompileRequest& request,
                               const EventCallback& on_event) = 0;
  // One blob for each digest, in the order asked.
  virtual absl::StatusOr<std::vector<v1::Blob>> Fetch(const std::vector<std::string>& digests) = 0;
  virtual absl::StatusOr<v1::ExplainResponse> Explain(const v1::ExplainRequest& request) = 0;
  virtual absl::StatusOr<v1::ExplainKeyResponse> ExplainKey(
      const v1::ExplainKeyRequest& request) = 0;
  virtual absl::StatusOr<v1::StatusResponse> Status() = 0;
};

// Checks the stream of one Compile: bytes against their digests, and that program and report
// arrive.
class StreamVerifier {
 public:
  explicit StreamVerifier(const v1::CompileRequest& request)
      : with_cubins_(request.with_cubins()) {}
  absl::Status Check(const v1::CompileEvent& event);
  // After the last event of a stream that ended well.
  absl::Status Finish() const;

 private:
  bool with_cubins_;
  bool has_program_ = false;
  bool has_report_ = false;
};

}  // namespace hackc::client
