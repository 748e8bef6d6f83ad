// SPDX-License-Identifier: MIT
#include "compiler/program/program_builder.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/program/constant_bytes.h"
#include "compiler/program/dim_expr.h"
#include "compiler/program/flow.h"
#include "compiler/program/kernel_contract.h"
#include "compiler/program/settle_carries.h"
#include "compiler/program/split_prepare.h"
#include "compiler/program/workspace_plan.h"
#include "compiler/support/internal_error.h"
#include "compiler/support/name_set.h"

namespace hackc::program {
namespace {

constexpr char kFormatVersion[] = "1";

class Builder {
 public:
  explicit Builder(const std::string& arch) {
    plan_.program.format_version = kFormatVersion;
    plan_.program.arch = arch;
  }

  void AddEntry(const std::string& name, const ir::LoopModule& module) {
    entry_ = {.name = name, .symbols = FromIr(module.symbols)};
    if (plan_.program.entry_points.empty()) {
      plan_.program.model = module.name;
      plan_.program.symbols = entry_.symbols;
    }
    CoverSymbols();
    earlier_buffers_ = plan_.program.buffers.size();
    flow_ = MakeFlow(module);
    SplitPrepare(flow_);
    groups_ = SettleCarries(flow_);
    workspace_ = PlanWorkspace(flow_, groups_);
    output_of_.clear();
    buffer_of_.clear();
    for (size_t i = 0; i < flow_.outputs.size(); ++i) output_of_[groups_[flow_.outputs[i]]] = i;
    AddCallerBuffers();
    AddPrepare();
    entry_.steps = Steps(flow_.sections);
    entry_.workspace_bytes = workspace_.total_bytes;
    plan_.program.entry_points.push_back(std::move(entry_));
  }

  ProgramPlan Take() { return std::move(plan_); }

 private:
  void CoverSymbols() {
    std::vector<Symbol>& symbols = plan_.program.symbols;
    HACKC_CHECK(symbols.size() == entry_.symbols.size()) << entry_.name;
    for (size_t i = 0; i < symbols.size(); ++i) {
      const Symbol& symbol = entry_.symbols[i];
      HACKC_CHECK(symbols[i].name == symbol.name) << "symbol " << symbol.name;
      symbols[i].min = std::min(symbols[i].min, symbol.min);
      symbols[i].max = std::max(symbols[i].max, symbol.max);
    }
  }

  // ---- buffers ----------------------------------------------------------------------------------
  // What the caller binds stands first, used or not.
  void AddCallerBuffers() {
    for (size_t i = 0; i < flow_.values.size(); ++i) {
      if (flow_.values[i].kind != Buffer::Kind::kInput) continue;
      entry_.inputs.push_back(BufferOf(static_cast<int>(i)));
    }
    for (int output : flow_.outputs) entry_.outputs.push_back(BufferOf(output));
  }

  // The id of `buffer`; that of an equal one which an earlier entry point has.
  uint32_t AddBuffer(Buffer buffer) {
    using Kind = Buffer::Kind;
    const bool own = buffer.kind == Kind::kWorkspace || buffer.kind == Kind::kPrepared;
    for (size_t i = 0; i < earlier_buffers_ && !own; ++i) {
      const Buffer& other = plan_.program.buffers[i];
      buffer.id = other.id;
      if (other == buffer) return other.id;
      const bool bound =
          other.kind == buffer.kind && other.kind != Kind::kConstant && other.kind != Kind::kWeight;
      HACKC_CHECK(!bound || other.name != buffer.name)
          << "%" << buffer.name << " has another type in another entry point";
    }
    buffer.id = static_cast<uint32_t>(plan_.program.buffers.size());
    plan_.program.buffers.push_back(std::move(buffer));
    return plan_.program.buffers.back().id;
  }

  // The buffer of a value; of a temporary, that of its group.
  uint32_t BufferOf(int id) {
    const FlowValue& value = flow_.values[id];
    const bool temporary = value.kind == Buffer::Kind::kWorkspace;
    // Values of one group differ in shape only if their carry does, which no module says.
    const int key = temporary ? groups_[id] : id;
    if (const uint32_t* known = FindOrNull(buffer_of_, key)) return *known;
    Buffer buffer{.name = value.name, .kind = value.kind, .dtype = FromIr(value.type.dtype)};
    for (const ir::Expr& extent : value.type.shape) buffer.shape.push_back(FromExpr(extent));
    if (const size_t* output = temporary ? FindOrNull(output_of_, key) : nullptr) {
      buffer.kind = Buffer::Kind::kOutput;
      buffer.name = flow_.output_names[*output];
    } else if (temporary) {
      buffer.offset = workspace_.offsets.at(key);
    }
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
    return buffer_of_[key] = AddBuffer(std::move(buffer));
  }

  // ---- prepare ----------------------------------------------------------------------------------
  // What an equal launch prepared, for this entry point or an earlier one, is prepared.
  void AddPrepare() {
    for (FlowSection& section : flow_.prepare) {
      std::erase_if(section.launches,
                    [&](const FlowLaunch& launch) { return IsPrepared(section, launch); });
    }
    std::vector<Step> steps = Steps(flow_.prepare);
    std::move(steps.begin(), steps.end(), std::back_inserter(plan_.program.prepare));
  }

  bool IsPrepared(const FlowSection& section, const FlowLaunch& launch) {
    std::string key = absl::StrCat(section.count, " ", section.first_layer, " ", section.layer_step,
                                   "\n", KernelText(launch.fn));
    std::vector<int> made;
    for (size_t k = 0; k < launch.args.size(); ++k) {
      if (Writes(launch.fn.fn.buffers[k])) {
        made.push_back(launch.args[k]);
      } else {
        absl::StrAppend(&key, "\n", BufferOf(launch.args[k]));
      }
    }
    auto [known, first] = prepared_.try_emplace(std::move(key));
    for (size_t i = 0; i < made.size(); ++i) {
      if (first) known->second.push_back(BufferOf(made[i]));
      buffer_of_[made[i]] = known->second[i];
    }
    return !first;
  }

  // ---- launches ---------------------------------------------------------------------------------
  std::vector<Step> Steps(const std::vector<FlowSection>& sections) {
    std::vector<Step> steps;
    for (const FlowSection& section : sections) {
      if (section.launches.empty()) continue;
      std::vector<Step> inner;
      for (const FlowLaunch& launch : section.launches) inner.push_back(StepOf(launch));
      if (section.count == 1) {
        std::move(inner.begin(), inner.end(), std::back_inserter(steps));
      } else {
        steps.push_back(
            {.repeat_count = static_cast<uint32_t>(section.count), .steps = std::move(inner)});
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
    const bool later = !plan_.program.entry_points.empty();
    std::string name = fn.fn.name;
    if (!names_.Add(name))
      name = names_.Unique(later ? absl::StrCat(name, "_", entry_.name) : name);
    plan_.program.kernels.push_back(
        {.name = name, .computes = fn.fn.computes, .arch = plan_.program.arch});
    plan_.loops.push_back(fn);
    return it->second;
  }

  ProgramPlan plan_;
  // Of the entry point being added.
  EntryPoint entry_;
  size_t earlier_buffers_ = 0;
  Flow flow_;
  std::vector<int> groups_;
  WorkspacePlan workspace_;
  std::map<int, size_t> output_of_;  // group -> index of the output that it holds
  std::map<int, uint32_t> buffer_of_;
  // Of all.
  std::map<std::string, std::vector<uint32_t>>
      prepared_;  // buffers by section, kernel and arguments
  std::map<std::string, uint32_t> kernel_of_;
  NameSet names_{"_"};
};

}  // namespace

std::string KernelText(const ir::LoopFn& fn) {
  ir::LoopFn anonymous = fn;
  anonymous.fn.name = "kernel";
  anonymous.fn.computes.clear();
  return ir::Print(anonymous);
}

ProgramPlan BuildProgram(const std::vector<EntryModule>& entries, const std::string& arch) {
  Builder builder(arch);
  for (const EntryModule& entry : entries) builder.AddEntry(entry.name, entry.module);
  return builder.Take();
}

}  // namespace hackc::program
