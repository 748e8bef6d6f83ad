// SPDX-License-Identifier: MIT
#include "compiler/interp/tensor_interpreter.h"

#include "compiler/interp/loop_interpreter.h"
#include "compiler/interp/module_run.h"
#include "compiler/ir/rewrite.h"
#include "compiler/support/internal_error.h"

namespace hackc::interp {
namespace {

using ir::Expr;

// An axis and a value may have the same name in Tensor IR; in statements they may not.
std::string LoopName(const std::string& axis) { return axis + "%"; }

ir::Block InLoops(const std::vector<ir::TensorAxis>& axes, ir::AxisRole role, ir::Block body) {
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    body = {ir::MakeStmt(ir::For{
        LoopName(axis->name), role, ir::LoopKind::kSequential, axis->extent, {}, std::move(body)})};
  }
  return body;
}

// Statements that compute one element, which `state` then reads.
ir::Block Reduction(const std::string& state, ir::Monoid monoid,
                    const std::vector<ir::TensorAxis>& axes, std::vector<Expr> operands) {
  ir::Block block = InLoops(axes, ir::AxisRole::kReduce,
                            {ir::MakeStmt(ir::Accumulate{state, {}, std::move(operands)})});
  block.insert(block.begin(), ir::MakeStmt(ir::Accumulator{state, monoid}));
  return block;
}

// One operation is what it says as statements: loops over its axes round the store of one element.
ir::Block Statements(const ir::TensorOp& op) {
  const std::string state = op.out + "=";  // no name of the module
  std::vector<Expr> at;
  for (const ir::TensorAxis& axis : op.axes) at.push_back(ir::Axis(axis.name));
  ir::Store store{op.out, at, ir::MakeVar(state, ir::DType::kF32)};
  ir::Block element;
  if (const auto* reduce = std::get_if<ir::TensorReduce>(&op.op)) {
    element = Reduction(state, reduce->monoid, reduce->reduce_axes, reduce->operands);
  } else if (const auto* contract = std::get_if<ir::TensorContract>(&op.op)) {
    element =
        Reduction(state, ir::Monoid::kSum, contract->contract_axes, {contract->a * contract->b});
  } else if (const auto* scatter = std::get_if<ir::TensorScatter>(&op.op)) {
    store = {scatter->state, scatter->indices, scatter->value, scatter->guard};
  } else {
    store.value = ir::ExprsOf(op)[0];
  }
  element.push_back(ir::MakeStmt(std::move(store)));
  return ir::SubstituteVars(
      InLoops(ir::FreeAxes(op), ir::AxisRole::kFree, std::move(element)),
      [&](const std::string& name) { return name == state ? nullptr : ir::Axis(LoopName(name)); });
}

absl::StatusOr<TensorData> RunOp(const ir::TensorOp& op, Environment& environment) {
  const auto* scatter = std::get_if<ir::TensorScatter>(&op.op);
  const std::string& target = scatter ? scatter->state : op.out;
  const RunInputs& inputs = environment.run();
  FunctionRun run{inputs.symbols, {}, Arithmetic::kExact};
  if (inputs.round_to_storage) run.arithmetic = Arithmetic::kStorage;
  ir::LoopFn fn{{.name = op.out, .body = Statements(op)}};
  const auto declare = [&](const std::string& name, ir::Access access, TensorData data) {
    std::vector<Expr> shape;
    for (int64_t extent : data.shape) shape.push_back(ir::IntLit(extent));
    fn.fn.buffers.push_back({name, data.dtype, std::move(shape), access});
    run.buffers[name] = std::move(data);
  };
  for (const std::string& name : ir::ValuesRead(op)) {
    const TensorData* data = environment.Find(name);
    HACKC_CHECK(data != nullptr) << "%" << op.out << " reads unknown @" << name;
    declare(name, name == target ? ir::Access::kReadWrite : ir::Access::kRead, *data);
  }
  if (!scatter) {
    HACKC_ASSIGN_OR_RETURN(TensorData out, environment.Zeros(op.type));
    declare(target, ir::Access::kWrite, std::move(out));
  }
  if (absl::Status status = RunLoop(fn, run); !status.ok()) {
    return absl::InternalError(status.message());
  }
  TensorData result = std::move(run.buffers[target]);
  if (scatter) *environment.Find(target) = result;
  return result;
}

}  // namespace

absl::StatusOr<std::map<std::string, TensorData>> RunTensor(const ir::TensorModule& module,
                                                            const RunInputs& run) {
  return RunModule(module, run, RunOp);
}

}  // namespace hackc::interp
