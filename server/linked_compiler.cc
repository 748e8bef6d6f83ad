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
  absl::StatusOr<Reference> ReferenceKernel(const std::string& loop_text,
                                            const std::string& arch) override {
    return hackc::ReferenceKernel(loop_text, arch);
  }
  absl::StatusOr<Rates> TargetRates(const std::string& arch) override {
    return hackc::TargetRates(arch);
  }
  absl::StatusOr<std::string> NvrtcVersion() override { return hackc::NvrtcVersion(); }
  absl::StatusOr<std::vector<std::string>> SupportedArchs() override {
    return hackc::SupportedArchs();
  }
  absl::Status LoadPassPlugin(const std::string& path) override {
    return hackc::LoadPassPlugin(path);
  }
};

}  // namespace

std::shared_ptr<CompilerBackend> LinkedCompiler() { return std::make_shared<Linked>(); }

}  // namespace hackc::server
