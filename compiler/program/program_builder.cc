// SPDX-License-Identifier: MIT
#include "compiler/program/program_builder.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/program/constant_bytes.h"
#include "compiler/program/dim_expr.h"
#include "compiler/program/flow.h"
#include "compiler/program/kernel_contract.h"
#include "compiler/program/settle_carries.h"
#include "compiler/program/split_prepare.h"
#include "compiler/program/workspace_plan.h"
#include "compiler/support/internal_error.h"

namespace hackc::program {
namespace {

constexpr char kFormatVersion[] = "1";

class Builder {
 public:
  Builder(const ir::LoopModule& module, const std::string& arch) : flow_(MakeFlow(module)) {
    plan_.program.format_version = kFormatVersion;
    plan_.program.model = module.name;
    plan_.program.arch = arch;
    for (const ir::SymbolDecl& symbol : module.symbols) {
      plan_.program.symbols.push_back({symbol.name, symbol.min, symbol.max});
    }
    SplitPrepare(flow_);
    groups_ = SettleCarries(flow_);
    workspace_ = PlanWorkspace(flow_, groups_);
  }

  ProgramPlan Run() {
    for (size_t i = 0; i < flow_.outputs.size(); ++i) output_of_[groups_[flow_.outputs[i]]] = i;
    AddCallerBuffers();
    plan_.program.prepare = Steps(flow_.prepare);
    entry_.name = "prefill";
    entry_.steps = Steps(flow_.sections);
    entry_.workspace_bytes = workspace_.total_bytes;
    plan_.program.entry_points.push_back(std::move(entry_));
    return std::move(plan_);
  }

 private:
  // ---- buffers --------------------------------------------------------------------------------------
  // What the caller binds stands first, used or not.
  void AddCallerBuffers() {
    for (size_t i = 0; i < flow_.values.size(); ++i) {
      if (flow_.values[i].kind != FlowValue::Kind::kInput) continue;
      entry_.inputs.push_back(BufferOf(static_cast<int>(i)));
    }
    for (int output : flow_.outputs) entry_.outputs.push_back(BufferOf(output));
  }

  Buffer& AddBuffer(const FlowValue& value, Buffer::Kind kind) {
    Buffer buffer;
    buffer.id = static_cast<uint32_t>(plan_.program.buffers.size());
    buffer.name = value.name;
    buffer.kind = kind;
    buffer.dtype = FromIr(value.type.dtype);
    for (const ir::Expr& extent : value.type.shape) buffer.shape.push_back(FromExpr(extent));
    plan_.program.buffers.push_back(std::move(buffer));
    return plan_.program.buffers.back();
  }

  // The buffer of a value; of a temporary, that of its group.
  uint32_t BufferOf(int id) {
    const FlowValue& value = flow_.values[id];
    const bool temporary = value.kind == FlowValue::Kind::kTemporary;
    // Values of one group differ in shape only if their carry does, which no module says.
    const int key = temporary ? groups_[id] : id;
    if (auto it = buffer_of_.find(key); it != buffer_of_.end()) return it->second;
    Buffer& buffer = AddBuffer(value, KindOf(value, key));
    if (buffer.kind == Buffer::Kind::kOutput) buffer.name = flow_.output_names[output_of_[key]];
    if (buffer.kind == Buffer::Kind::kWorkspace) buffer.offset = workspace_.offsets.at(key);
    if (buffer.kind == Buffer::Kind::kConstant) {
      buffer.data = ConstantBytes(value.source->data, value.type.dtype);
    }
    buffer.weight_name = value.weight_name;
    if (value.per_iteration) {
      const FlowSection& section = flow_.sections[static_cast<size_t>(value.section)];
      buffer.repeat_count = static_cast<uint32_t>(section.count);
      buffer.first_layer = static_cast<uint32_t>(value.first_layer);
      buffer.layer_step = static_cast<uint32_t>(section.layer_step);
    }
    buffer_of_[key] = buffer.id;
    return buffer.id;
  }

  Buffer::Kind KindOf(const FlowValue& value, int group) const {
    switch (value.kind) {
      case FlowValue::Kind::kInput:
        return Buffer::Kind::kInput;
      case FlowValue::Kind::kWeight:
        return Buffer::Kind::kWeight;
      case FlowValue::Kind::kConstant:
        return Buffer::Kind::kConstant;
      case FlowValue::Kind::kState:
        return Buffer::Kind::kState;
      case FlowValue::Kind::kPrepared:
        return Buffer::Kind::kPrepared;
      case FlowValue::Kind::kTemporary:
        break;
    }
    return output_of_.count(group) ? Buffer::Kind::kOutput : Buffer::Kind::kWorkspace;
  }

  // ---- launches -------------------------------------------------------------------------------------
  std::vector<Step> Steps(const std::vector<FlowSection>& sections) {
    std::vector<Step> steps;
    for (const FlowSection& section : sections) {
      if (section.launches.empty()) continue;
      std::vector<Step> inner;
      for (const FlowLaunch& launch : section.launches) inner.push_back(StepOf(launch));
      if (section.count == 1) {
        std::move(inner.begin(), inner.end(), std::back_inserter(steps));
      } else {
        Step repeat;
        repeat.repeat_count = static_cast<uint32_t>(section.count);
        repeat.steps = std::move(inner);
        steps.push_back(std::move(repeat));
      }
    }
    return steps;
  }

  Step StepOf(const FlowLaunch& launch) {
    Step step;
    step.launch.kernel = KernelOf(launch.fn);
    for (int arg : launch.args) step.launch.args.push_back({BufferOf(arg), {}});
    return step;
  }

  uint32_t KernelOf(const ir::LoopFn& fn) {
    auto [it, first] =
        kernel_of_.emplace(KernelText(fn), static_cast<uint32_t>(plan_.loops.size()));
    if (!first) return it->second;
    ir::LoopFn loop = fn;
    for (int i = 2; !names_.insert(loop.fn.name).second; ++i)
      loop.fn.name = absl::StrCat(fn.fn.name, "_", i);
    Kernel kernel;
    kernel.name = loop.fn.name;
    kernel.computes = loop.fn.computes;
    kernel.arch = plan_.program.arch;
    plan_.program.kernels.push_back(std::move(kernel));
    plan_.loops.push_back(std::move(loop));
    return it->second;
  }

  Flow flow_;
  std::vector<int> groups_;
  WorkspacePlan workspace_;
  ProgramPlan plan_;
  EntryPoint entry_;
  std::map<int, size_t> output_of_;  // group -> index of the output that it holds
  std::map<int, uint32_t> buffer_of_;
  std::map<std::string, uint32_t> kernel_of_;
  std::set<std::string> names_;
};

}  // namespace

ProgramPlan BuildProgram(const ir::LoopModule& module, const std::string& arch) {
  return Builder(module, arch).Run();
}

}  // namespace hackc::program
