// SPDX-License-Identifier: MIT
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "compiler/passes/plugin.h"
#include "compiler/support/internal_error.h"

namespace hackc::passes {
namespace {

bool Fault(std::string_view kind) {
  const char* fault = std::getenv("HACKC_TEST_FAULT");
  return fault != nullptr && fault == kind;
}

ir::TensorModule FaultyTensor(const ir::TensorModule& module) {
  HACKC_CHECK(!Fault("tensor throws")) << "on purpose";
  return module;
}

ir::LoopModule FaultyLoops(const ir::LoopModule& module) {
  HACKC_CHECK(!Fault("loops throw")) << "on purpose";
  if (Fault("program contradicts itself")) {  // which no verifier of functions sees
    ir::LoopModule out = module;
    out.outputs.push_back("nothing");
    return out;
  }
  return module;
}

absl::StatusOr<ir::TileFn> FaultyTile(const ir::TileFn& tile) {
  if (Fault("tile crashes")) std::raise(SIGSEGV);
  if (Fault("tile refuses")) return absl::UnimplementedError("on purpose");
  return tile;
}

absl::StatusOr<ir::KernelFn> FaultyKernel(const ir::KernelFn& kernel) {
  ir::KernelFn out = kernel;
  if (Fault("kernel is wrong")) out.threads = 4096;
  return out;
}

}  // namespace
}  // namespace hackc::passes

extern "C" void hackc_pass_plugin(hackc::passes::PassTables& tables) {
  using namespace hackc::passes;  // NOLINT: rows as in the tables themselves
  const auto lowering = std::find_if(tables.module.begin(), tables.module.end(),
                                     [](const auto& pass) { return pass.name == "lower_tensor"; });
  tables.module.insert(lowering, {"faulty_tensor", &FaultyTensor});
  tables.module.push_back({"faulty_loops", &FaultyLoops});
  tables.kernel.insert(tables.kernel.begin(), {"faulty_tile", &FaultyTile});
  tables.kernel.push_back({"faulty_kernel", &FaultyKernel});
}
