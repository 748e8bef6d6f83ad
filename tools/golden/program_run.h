// SPDX-License-Identifier: MIT
// Runs a Program on the CPU as a client would on the GPU: prepares the weights, then launches the
// kernels of an entry point over one workspace, each in the interpreter of its Loop, Tile or Kernel
// IR, which is read back from its text. Grids are those of the launch contract. Workspace, outputs
// and states start as NaN.
//
//   HACKC_ASSIGN_OR_RETURN(
//       auto run, ProgramRun::Create(plan, opt::Level::kKernel, Arithmetic::kHardware, weights));
//   HACKC_ASSIGN_OR_RETURN(
//       Tensors outputs, run->Run("decode", {{"batch", 1}, {"seq", 1}, {"past", 4}}, inputs));
//
// Thread safety: none; the plan must outlive the run.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/compile.h"
#include "compiler/interp/run_inputs.h"
#include "compiler/interp/scalar_ops.h"
#include "tools/golden/model.h"
#include "tools/opt/unit.h"

namespace hackc::golden {

using Symbols = std::map<std::string, int64_t>;
using Weights = decltype(interp::RunInputs::weights);

class ProgramRun {
 public:
  static absl::StatusOr<std::unique_ptr<ProgramRun>> Create(const Plan& plan, opt::Level level,
                                                            interp::Arithmetic arithmetic,
                                                            Weights weights);

  // Outputs by name. States are kept from run to run.
  absl::StatusOr<Tensors> Run(const std::string& entry, const Symbols& symbols,
                              const Tensors& inputs);
  void ForgetStates();

 private:
  ProgramRun(const program::Program& program, interp::Arithmetic arithmetic, Weights weights)
      : program_(program), arithmetic_(arithmetic), weights_(std::move(weights)) {}

  absl::Status RunSteps(const std::vector<program::Step>& steps, uint32_t iteration);
  absl::Status RunLaunch(const program::Launch& launch, uint32_t iteration);
  absl::StatusOr<interp::TensorData> Read(const program::Buffer& buffer, uint32_t iteration);
  absl::Status Write(const program::Buffer& buffer, uint32_t iteration, interp::TensorData data);
  absl::StatusOr<interp::TensorData> Weight(const program::Buffer& buffer, uint32_t iteration);
  interp::TensorData Poison(const program::Buffer& buffer) const;

  const program::Program& program_;
  const interp::Arithmetic arithmetic_;
  const Weights weights_;
  std::vector<opt::KernelFunction> kernels_;
  int launches_ = 0;
  Symbols symbols_;
  // All but the workspace, by buffer and iteration.
  std::map<std::pair<uint32_t, uint32_t>, interp::TensorData> tensors_;
  // An element stands at its first byte; its other bytes are poison.
  std::vector<double> workspace_;
};

}  // namespace hackc::golden
