// SPDX-License-Identifier: MIT
#include "client/cli/local_compiler.h"

#ifdef HACKC_WITH_LOCAL

#include <utility>

#include "client/runtime/digest.h"
#include "compiler/support/status_macros.h"
#include "server/engine.h"
#include "server/local.h"

namespace hackc::client {
namespace {

class LocalCompiler : public CompilerApi {
 public:
  explicit LocalCompiler(std::unique_ptr<server::Engine> engine) : engine_(std::move(engine)) {}

  absl::Status Compile(const v1::CompileRequest& request, const EventCallback& on_event) override {
    StreamVerifier verifier(request);
    absl::Status received = absl::OkStatus();
    absl::Status status = engine_->Compile(request, [&](const v1::CompileEvent& event) {
      received = verifier.Check(event);
      if (received.ok() && on_event) on_event(event);
      return received.ok();
    });
    HACKC_RETURN_IF_ERROR(received);
    HACKC_RETURN_IF_ERROR(status);
    return verifier.Finish();
  }

  absl::StatusOr<std::vector<v1::Blob>> Fetch(const std::vector<std::string>& digests) override {
    std::vector<v1::Blob> blobs;
    for (const std::string& digest : digests) {
      HACKC_ASSIGN_OR_RETURN(v1::Blob blob, engine_->Fetch(digest));
      HACKC_RETURN_IF_ERROR(VerifyDigest(digest, blob.data(), "blob"));
      blobs.push_back(std::move(blob));
    }
    return blobs;
  }

  absl::StatusOr<v1::ExplainResponse> Explain(const v1::ExplainRequest& request) override {
    return engine_->Explain(request);
  }
  absl::StatusOr<v1::ExplainKeyResponse> ExplainKey(const v1::ExplainKeyRequest& request) override {
    return engine_->ExplainKey(request);
  }
  absl::StatusOr<v1::StatusResponse> Status() override { return engine_->Status(); }

 private:
  std::unique_ptr<server::Engine> engine_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CompilerApi>> OpenLocalCompiler(const std::string& cache_dir) {
  server::LocalOptions options;
  options.cache_dir = cache_dir.empty() ? server::DefaultCacheDir() : cache_dir;
  HACKC_ASSIGN_OR_RETURN(std::unique_ptr<server::Engine> engine, server::OpenLocalEngine(options));
  return std::make_unique<LocalCompiler>(std::move(engine));
}

}  // namespace hackc::client

#else

namespace hackc::client {

absl::StatusOr<std::unique_ptr<CompilerApi>> OpenLocalCompiler(const std::string&) {
  return absl::UnimplementedError("--local: this hackc-client was built without the compiler");
}

}  // namespace hackc::client

#endif
