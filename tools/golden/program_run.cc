// SPDX-License-Identifier: MIT
#include "tools/golden/program_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "compiler/interp/kernel_interpreter.h"
#include "compiler/interp/loop_interpreter.h"
#include "compiler/interp/module_run.h"
#include "compiler/interp/tile_interpreter.h"
#include "compiler/program/kernel_contract.h"
#include "compiler/support/cat.h"
#include "compiler/support/status_macros.h"

namespace hackc::golden {
namespace {

using interp::TensorData;
using program::Buffer;

// As an index it is out of every bound.
constexpr double kIntegerPoison = -1e9;

double PoisonOf(ir::DType dtype) {
  return ir::IsFloat(dtype) ? std::numeric_limits<double>::quiet_NaN() : kIntegerPoison;
}

bool IsState(const Buffer& buffer) { return buffer.kind == Buffer::Kind::kState; }

}  // namespace

absl::StatusOr<std::unique_ptr<ProgramRun>> ProgramRun::Create(const Plan& plan, opt::Level level,
                                                               interp::Arithmetic arithmetic,
                                                               Weights weights) {
  std::unique_ptr<ProgramRun> run(new ProgramRun(plan.program, arithmetic, std::move(weights)));
  for (const KernelSource& source : plan.kernels) {
    HACKC_ASSIGN_OR_RETURN(const opt::Unit unit,
                           opt::Parse(source.ir.at(std::string(opt::Name(level)))));
    run->kernels_.push_back(std::get<opt::Kernels>(unit).functions.at(0));
  }
  HACKC_RETURN_IF_ERROR(run->RunSteps(plan.program.prepare, 0));
  return run;
}

absl::StatusOr<Tensors> ProgramRun::Run(const std::string& entry, const Symbols& symbols,
                                        const Tensors& inputs) {
  const auto& entries = program_.entry_points;
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const program::EntryPoint& candidate) {
        return candidate.name == entry &&
               std::all_of(candidate.symbols.begin(), candidate.symbols.end(),
                           [&](const program::Symbol& symbol) {
                             const int64_t value = symbols.at(symbol.name);
                             return value >= symbol.min && value <= symbol.max;
                           });
      });
  if (found == entries.end()) {
    return absl::NotFoundError(Cat("no entry point ", entry, " is compiled for such sizes"));
  }
  symbols_ = symbols;
  workspace_.assign(program::Evaluate(found->workspace_bytes, symbols),
                    std::numeric_limits<double>::quiet_NaN());
  for (uint32_t id : found->inputs) {
    TensorData input = inputs.at(program_.buffers[id].name);
    input.dtype = program::ToIr(program_.buffers[id].dtype).value();
    tensors_[{id, 0}] = std::move(input);
  }
  for (uint32_t id : found->outputs) tensors_.erase({id, 0});
  HACKC_RETURN_IF_ERROR(RunSteps(found->steps, 0));
  Tensors outputs;
  for (uint32_t id : found->outputs) {
    HACKC_ASSIGN_OR_RETURN(outputs[program_.buffers[id].name], Read(program_.buffers[id], 0));
  }
  return outputs;
}

void ProgramRun::ForgetStates() {
  std::erase_if(tensors_,
                [&](const auto& entry) { return IsState(program_.buffers[entry.first.first]); });
}

absl::Status ProgramRun::RunSteps(const std::vector<program::Step>& steps, uint32_t iteration) {
  for (const program::Step& step : steps) {
    for (uint32_t i = 0; i < step.repeat_count; ++i) {
      HACKC_RETURN_IF_ERROR(RunSteps(step.steps, i));
    }
    if (step.repeat_count == 0) HACKC_RETURN_IF_ERROR(RunLaunch(step.launch, iteration));
  }
  return absl::OkStatus();
}

absl::Status ProgramRun::RunLaunch(const program::Launch& launch, uint32_t iteration) {
  opt::KernelFunction& kernel = kernels_[launch.kernel];
  const ir::Function& fn = opt::FunctionOf(kernel);
  if (fn.buffers.size() != launch.args.size()) {
    return absl::InternalError(
        Cat(fn.name, ": ", launch.args.size(), " arguments for ", fn.buffers.size(), " buffers"));
  }
  interp::FunctionRun run;
  run.arithmetic = arithmetic_;
  run.symbols = symbols_;
  for (size_t i = 0; i < fn.buffers.size(); ++i) {  // what is written is gone before it is read
    const Buffer& buffer = program_.buffers[launch.args[i].buffer];
    if (fn.buffers[i].access != ir::Access::kWrite) continue;
    HACKC_RETURN_IF_ERROR(Write(buffer, iteration, Poison(buffer)));
  }
  for (size_t i = 0; i < fn.buffers.size(); ++i) {
    if (fn.buffers[i].access == ir::Access::kWrite) continue;
    HACKC_ASSIGN_OR_RETURN(run.buffers[fn.buffers[i].name],
                           Read(program_.buffers[launch.args[i].buffer], iteration));
  }
  if (auto* loop = std::get_if<ir::LoopFn>(&kernel)) {
    HACKC_RETURN_IF_ERROR(interp::RunLoop(*loop, run));
  } else if (auto* tile = std::get_if<ir::TileFn>(&kernel)) {
    HACKC_RETURN_IF_ERROR(interp::RunTile(*tile, run));
  } else {
    auto& threads = std::get<ir::KernelFn>(kernel);
    for (size_t i = 0; i < 3; ++i) {
      threads.grid[i] =
          ir::IntLit(program::Evaluate(program_.kernels[launch.kernel].grid[i], symbols_));
    }
    HACKC_RETURN_IF_ERROR(
        interp::RunKernel(threads, run, {.reverse_blocks = launches_++ % 2 != 0}));
  }
  for (size_t i = 0; i < fn.buffers.size(); ++i) {
    if (fn.buffers[i].access == ir::Access::kRead) continue;
    HACKC_RETURN_IF_ERROR(Write(program_.buffers[launch.args[i].buffer], iteration,
                                std::move(run.buffers.at(fn.buffers[i].name))));
  }
  return absl::OkStatus();
}

TensorData ProgramRun::Poison(const Buffer& buffer) const {
  std::vector<int64_t> shape;
  for (const program::DimExpr& extent : buffer.shape) {
    shape.push_back(program::Evaluate(extent, symbols_));
  }
  const ir::DType dtype = program::ToIr(buffer.dtype).value_or(ir::DType::kF64);
  return TensorData::Filled(dtype, std::move(shape), PoisonOf(dtype));
}

absl::StatusOr<TensorData> ProgramRun::Read(const Buffer& buffer, uint32_t iteration) {
  const std::pair<uint32_t, uint32_t> key{buffer.id, buffer.repeat_count > 0 ? iteration : 0};
  if (const auto found = tensors_.find(key); found != tensors_.end()) return found->second;
  TensorData data = Poison(buffer);
  switch (buffer.kind) {
    case Buffer::Kind::kWeight: {
      HACKC_ASSIGN_OR_RETURN(data, Weight(buffer, iteration));
      return tensors_[key] = std::move(data);
    }
    case Buffer::Kind::kConstant:
      data.values = Elements(data.dtype, buffer.data.data(), data.size());
      return data;
    case Buffer::Kind::kWorkspace: {
      const int64_t begin = program::Evaluate(buffer.offset, symbols_), size = SizeOf(data.dtype);
      for (int64_t i = 0; i < data.size(); ++i) {
        const double value = workspace_.at(begin + i * size);
        data.values[i] = std::isnan(value) ? PoisonOf(data.dtype) : value;
      }
      return data;
    }
    default: return data;  // nobody has written it
  }
}

absl::StatusOr<TensorData> ProgramRun::Weight(const Buffer& buffer, uint32_t iteration) {
  const uint32_t layer = buffer.first_layer + iteration * buffer.layer_step;
  HACKC_ASSIGN_OR_RETURN(const TensorData* weight,
                         weights_(interp::WithLayer(buffer.weight_name, static_cast<int>(layer))));
  TensorData data = *weight;
  data.dtype = program::ToIr(buffer.dtype).value();
  if (arithmetic_ != interp::Arithmetic::kExact) data.Round();
  return data;
}

absl::Status ProgramRun::Write(const Buffer& buffer, uint32_t iteration, TensorData data) {
  if (buffer.kind != Buffer::Kind::kWorkspace) {
    tensors_[{buffer.id, buffer.repeat_count > 0 ? iteration : 0}] = std::move(data);
    return absl::OkStatus();
  }
  const int64_t begin = program::Evaluate(buffer.offset, symbols_), size = SizeOf(data.dtype);
  if (begin + data.size() * size > static_cast<int64_t>(workspace_.size())) {
    return absl::InternalError(Cat(buffer.name, " lies outside the workspace"));
  }
  std::fill_n(workspace_.begin() + begin, data.size() * size,
              std::numeric_limits<double>::quiet_NaN());
  for (int64_t i = 0; i < data.size(); ++i) workspace_[begin + i * size] = data.values[i];
  return absl::OkStatus();
}

}  // namespace hackc::golden
