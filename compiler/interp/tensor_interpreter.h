// SPDX-License-Identifier: MIT
// Reference semantics of Tensor IR: every element of every operation from its expression, one after
// another, by the interpreter of loop_interpreter.h.
//
//   HACKC_ASSIGN_OR_RETURN(auto outputs, RunTensor(module, run));   // run as for RunGraph
//   outputs.at("logits");
//
// In float64, casts between floats keep the value; with run.round_to_storage each cast rounds to
// its dtype and each value is held in its own. The module must verify (ir::VerifyTensor); an index
// out of range is INTERNAL.
// Thread safety: runs share nothing but what `run` points to.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/interp/run_inputs.h"
#include "compiler/ir/tensor.h"

namespace hackc::interp {

// The module's outputs by name.
absl::StatusOr<std::map<std::string, TensorData>> RunTensor(const ir::TensorModule& module,
                                                            const RunInputs& run);

}  // namespace hackc::interp
