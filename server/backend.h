// SPDX-License-Identifier: MIT
// The compiler as the server sees it: the functions of compiler/compile.h behind an interface, so
// that tests can put a compiler there that crashes, hangs or counts.
//
//   std::shared_ptr<CompilerBackend> backend = LinkedCompiler();  // linked_compiler.cc
//
// Thread safety: all functions may be called from any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/compile.h"

namespace hackc::server {

class CompilerBackend {
 public:
  virtual ~CompilerBackend() = default;
  virtual absl::StatusOr<KeyFields> ProgramKeyFields(const CompileRequest& request) = 0;
  virtual absl::StatusOr<Plan> PlanProgram(const CompileRequest& request) = 0;
  virtual absl::StatusOr<CompiledKernel> CompileKernel(const KernelSource& source) = 0;
  virtual absl::StatusOr<Reference> ReferenceKernel(const std::string& loop_text,
                                                    const std::string& arch) = 0;
  virtual absl::StatusOr<Rates> TargetRates(const std::string& arch) = 0;
  virtual absl::StatusOr<std::string> NvrtcVersion() = 0;
  virtual absl::StatusOr<std::vector<std::string>> SupportedArchs() = 0;
  // Before the first compile.
  virtual absl::Status LoadPassPlugin(const std::string& path) {
    return absl::UnimplementedError("this compiler takes no pass plug-in: " + path);
  }
};

// The compiler that this binary is linked with.
std::shared_ptr<CompilerBackend> LinkedCompiler();

}  // namespace hackc::server
