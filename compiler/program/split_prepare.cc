// SPDX-License-Identifier: MIT
#include "compiler/program/split_prepare.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/stmt_text.h"

namespace hackc::program {
namespace {

class Splitter {
 public:
  explicit Splitter(Flow& flow) : flow_(flow), same_(flow.values.size()) {
    for (size_t i = 0; i < same_.size(); ++i) same_[i] = static_cast<int>(i);
    for (int output : flow.outputs) kept_.insert(output);
    for (const FlowSection& section : flow.sections) {
      for (const FlowCarry& carry : section.carries) kept_.insert({carry.initial, carry.yield});
    }
  }

  void Run() {
    for (size_t i = 0; i < flow_.sections.size(); ++i) {
      FlowSection& section = flow_.sections[i];
      FlowSection once, each = {section.count, section.first_layer, section.layer_step, {}, {}};
      std::vector<FlowLaunch> rest;
      for (FlowLaunch& launch : section.launches) {
        for (int& arg : launch.args) arg = same_[arg];
        if (!OnWeightsAlone(launch)) {
          rest.push_back(std::move(launch));
          continue;
        }
        bool per_iteration = DependsOnIteration(launch);
        const bool repeat = made_.IsRepeat(
            per_iteration ? std::to_string(i) : "", launch, [](int value) { return value; },
            [this](int value, int other) { same_[value] = other; });
        if (repeat) continue;
        for (size_t k = 0; k < launch.args.size(); ++k) {
          if (!Writes(launch.fn.fn.buffers[k])) continue;
          FlowValue& value = flow_.values[launch.args[k]];
          value.kind = Buffer::Kind::kPrepared;
          value.per_iteration = per_iteration;
          if (!per_iteration) value.section = -1;
        }
        (per_iteration ? each : once).launches.push_back(std::move(launch));
      }
      section.launches = std::move(rest);
      if (!once.launches.empty()) flow_.prepare.push_back(std::move(once));
      if (!each.launches.empty()) flow_.prepare.push_back(std::move(each));
    }
  }

 private:
  bool OnWeightsAlone(const FlowLaunch& launch) const {
    if (!launch.fn.fn.symbols.empty()) return false;
    for (size_t k = 0; k < launch.args.size(); ++k) {
      Buffer::Kind kind = flow_.values[launch.args[k]].kind;
      if (Writes(launch.fn.fn.buffers[k])) {
        if (kind == Buffer::Kind::kState || kept_.count(launch.args[k])) return false;
      } else if (kind != Buffer::Kind::kWeight && kind != Buffer::Kind::kConstant &&
                 kind != Buffer::Kind::kPrepared) {
        return false;
      }
    }
    return true;
  }

  bool DependsOnIteration(const FlowLaunch& launch) const {
    for (size_t k = 0; k < launch.args.size(); ++k) {
      bool read = !Writes(launch.fn.fn.buffers[k]);
      if (read && flow_.values[launch.args[k]].per_iteration) return true;
    }
    return false;
  }

  Flow& flow_;
  std::vector<int> same_;  // the value that stands for each
  std::set<int> kept_;
  LaunchTable made_;
};

}  // namespace

void SplitPrepare(Flow& flow) { Splitter(flow).Run(); }

bool LaunchTable::IsRepeat(std::string key, const FlowLaunch& launch,
                           const std::function<uint32_t(int)>& id,
                           const std::function<void(int, uint32_t)>& same) {
  absl::StrAppend(&key, "\n", KernelText(launch.fn));
  std::vector<int> made;
  for (size_t k = 0; k < launch.args.size(); ++k) {
    if (Writes(launch.fn.fn.buffers[k])) {
      made.push_back(launch.args[k]);
    } else {
      absl::StrAppend(&key, "\n", id(launch.args[k]));
    }
  }
  auto [it, first] = made_.try_emplace(std::move(key));
  for (size_t i = 0; i < made.size(); ++i) {
    if (first) {
      it->second.push_back(id(made[i]));
    } else {
      same(made[i], it->second[i]);
    }
  }
  return !first;
}

std::string KernelText(const ir::LoopFn& fn) {
  ir::LoopFn anonymous = fn;
  anonymous.fn.name = "kernel";
  anonymous.fn.computes.clear();
  return ir::Print(anonymous);
}

}  // namespace hackc::program
