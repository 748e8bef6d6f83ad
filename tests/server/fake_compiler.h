// SPDX-License-Identifier: MIT
// A compiler whose behaviour is written in the model's config, so that a request can make it slow,
// wrong or deadly, in this process or in a worker:
//
//   {"kernels": 3, "salt": "a", "behave": {"k1": "crash"}}
//
// Behaviours of a kernel (or of "plan", "front"): "slow" (sleeps "slow_ms"), "crash", "crash_once"
// (until the file "marker" exists), "hang", "garbage" (on the worker's channel), "throw", "error",
// "exhausted_once". On the fake GPU of tests/client/fake_cuda_library.cc a kernel does what "gpu":
// {"k1": "hang"} says of it. Each compile appends a line to "count_file" when there is one, so that
// counts hold across processes.
#pragma once

#include <atomic>
#include <string>

#include "hackc/v1/compiler.pb.h"
#include "server/backend.h"

namespace hackc::server {

class FakeCompiler : public CompilerBackend {
 public:
  absl::StatusOr<KeyFields> ProgramKeyFields(const CompileRequest& request) override;
  absl::StatusOr<Plan> PlanProgram(const CompileRequest& request) override;
  absl::StatusOr<CompiledKernel> CompileKernel(const KernelSource& source) override;
  absl::StatusOr<Reference> ReferenceKernel(const std::string& loop_text,
                                            const std::string& arch) override;
  absl::StatusOr<Rates> TargetRates(const std::string&) override {
    return Rates{4.8e12, 67e12, 989e12};
  }
  absl::StatusOr<std::string> NvrtcVersion() override { return std::string("13.0"); }
  absl::StatusOr<std::vector<std::string>> SupportedArchs() override {
    return std::vector<std::string>{"sm_80", "sm_90a"};
  }

  std::atomic<int> plans{0};
  std::atomic<int> compiles{0};
};

// A request whose config is `config_json`.
v1::CompileRequest FakeRequest(const std::string& config_json);

}  // namespace hackc::server
