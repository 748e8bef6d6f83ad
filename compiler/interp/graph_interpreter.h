// SPDX-License-Identifier: MIT
// Reference semantics of Graph IR: each operation as graph.h states it, in float64, one loop a
// dimension.
//
//   RunInputs run;
//   run.symbols = {{"batch", 1}, {"seq", 13}};
//   run.inputs["input_ids"] = ids;
//   run.weights = by_name;
//   HACKC_ASSIGN_OR_RETURN(auto outputs, RunGraph(module, run));
//   outputs.at("logits");
//
// The module must verify (ir::VerifyGraph). Missing or ill-shaped inputs are INVALID_ARGUMENT and
// name the value. Thread safety: runs share nothing but what `run` points to.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/interp/run_inputs.h"
#include "compiler/ir/graph.h"

namespace hackc::interp {

// The module's outputs by name.
absl::StatusOr<std::map<std::string, TensorData>> RunGraph(const ir::GraphModule& module,
                                                           const RunInputs& run);

}  // namespace hackc::interp
