// SPDX-License-Identifier: MIT
#include "server/backend.h"

namespace hackc::server {
namespace {

class Linked : public CompilerBackend {
 public:
  absl::StatusOr<KeyFields> ProgramKeyFields(const CompileRequest& request) override {
    return hackc::ProgramKeyFields(request);
  }
  absl::StatusOr<Plan> PlanProgram(const CompileRequest& request) override {
    return hackc::PlanProgram(request);
  }
  absl::StatusOr<CompiledKernel> CompileKernel(const KernelSource& source) override {
    return hackc::CompileKernel(source);
  }
  absl::StatusOr<std::string> NvrtcVersion() override { return hackc::NvrtcVersion(); }
  absl::StatusOr<std::vector<std::string>> SupportedArchs() override {
    return hackc::SupportedArchs();
  }
};

}  // namespace

std::shared_ptr<CompilerBackend> LinkedCompiler() { return std::make_shared<Linked>(); }

}  // namespace hackc::server
