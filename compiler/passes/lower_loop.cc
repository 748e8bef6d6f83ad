// SPDX-License-Identifier: MIT
#include "compiler/passes/lower_loop.h"

#include <chrono>

#include "compiler/ir/loop_verify.h"
#include "compiler/ir/tile_verify.h"
#include "compiler/passes/kernel/distribute.h"
#include "compiler/passes/kernel/insert_barriers.h"
#include "compiler/passes/kernel/pipeline_copies.h"
#include "compiler/passes/kernel/vectorize.h"
#include "compiler/passes/tile/expand_softmax.h"
#include "compiler/passes/tile/split_axes.h"
#include "compiler/support/cat.h"
#include "compiler/support/internal_error.h"
#include "compiler/support/status_macros.h"

namespace hackc::passes {

const std::vector<KernelPass>& KernelPasses() {
  static const auto* table = new std::vector<KernelPass>{
      {"expand_softmax", &ExpandSoftmax}, {"split_axes", &SplitAxes},
      {"distribute", &Distribute},        {"pipeline_copies", &PipelineCopies},
      {"vectorize", &Vectorize},          {"insert_barriers", &InsertBarriers},
  };
  return *table;
}

namespace {

// Throws what the verifier says of the IR that `pass` made.
void Require(std::string_view pass, const std::vector<std::string>& errors) {
  if (errors.empty()) return;
  std::string text;
  for (const std::string& error : errors) text += "\n" + error;
  throw InternalError(Cat("pass ", pass, " left wrong IR:", text));
}

}  // namespace

absl::StatusOr<LoweredKernel> LowerLoop(const ir::LoopFn& loop, const ir::Schedule& schedule,
                                        const ir::KernelLimits& limits) {
  Require("lower_tensor", ir::VerifyLoop(loop));
  LoweredKernel out;
  out.tile = {loop.fn, schedule};
  for (const KernelPass& pass : KernelPasses()) {
    auto start = std::chrono::steady_clock::now();
    try {
      if (auto* tile = std::get_if<0>(&pass.run)) {
        HACKC_ASSIGN_OR_RETURN(out.tile, (*tile)(out.tile));
      } else if (auto* lower = std::get_if<1>(&pass.run)) {
        HACKC_ASSIGN_OR_RETURN(out.kernel, (*lower)(out.tile));
      } else {
        HACKC_ASSIGN_OR_RETURN(out.kernel, std::get<2>(pass.run)(out.kernel));
      }
    } catch (const InternalError& error) {
      throw InternalError(std::string("pass ") + std::string(pass.name) + ", kernel " +
                          loop.fn.name + ": " + error.what());
    }
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    out.times.emplace_back(pass.name, took.count());
    const bool tile = out.kernel.fn.name.empty();
    Require(pass.name, tile ? ir::VerifyTile(out.tile) : ir::VerifyKernel(out.kernel, limits));
  }
  return out;
}

}  // namespace hackc::passes
