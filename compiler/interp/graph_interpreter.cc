// SPDX-License-Identifier: MIT
#include "compiler/interp/graph_interpreter.h"

#include <variant>

#include "compiler/interp/graph_ops.h"
#include "compiler/interp/module_run.h"
#include "compiler/support/internal_error.h"

namespace hackc::interp {

absl::StatusOr<std::map<std::string, TensorData>> RunGraph(const ir::GraphModule& module,
                                                           const RunInputs& run) {
  const auto past = run.symbols.find("past");
  return RunModule(
      module, run,
      [&](const ir::GraphOp& op, Environment& environment) -> absl::StatusOr<TensorData> {
        HACKC_ASSIGN_OR_RETURN(TensorData out, environment.Zeros(op.type));
        const auto value = [&](const std::string& name) -> TensorData& {
          TensorData* data = environment.Find(name);
          HACKC_CHECK(data != nullptr) << "%" << op.out << " reads unknown %" << name;
          return *data;
        };
        std::visit(GraphEvaluator{value, past == run.symbols.end() ? 0 : past->second, out}, op.op);
        return out;
      });
}

}  // namespace hackc::interp
