// SPDX-License-Identifier: MIT
#include "compiler/program/split_prepare.h"

#include <set>
#include <utility>

namespace hackc::program {
namespace {

class Splitter {
 public:
  explicit Splitter(Flow& flow) : flow_(flow) {
    for (int output : flow.outputs) kept_.insert(output);
    for (const FlowSection& section : flow.sections) {
      for (const FlowCarry& carry : section.carries) kept_.insert({carry.initial, carry.yield});
    }
  }

  void Run() {
    for (FlowSection& section : flow_.sections) {
      FlowSection once, each = {section.count, section.first_layer, section.layer_step, {}, {}};
      std::vector<FlowLaunch> rest;
      for (FlowLaunch& launch : section.launches) {
        if (!OnWeightsAlone(launch)) {
          rest.push_back(std::move(launch));
          continue;
        }
        const bool per_iteration = DependsOnIteration(launch);
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
  std::set<int> kept_;
};

}  // namespace

void SplitPrepare(Flow& flow) { Splitter(flow).Run(); }

}  // namespace hackc::program
