// SPDX-License-Identifier: MIT
// A Loop module with its names resolved: values are numbers, segments that run once are inlined,
// and every later step of program building adds to it or moves launches inside it.
//
//   Flow flow = MakeFlow(module);
//   flow.values[flow.sections[1].launches[0].args[0]].name;
//
// Thread safety: plain data.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/loop_module.h"
#include "compiler/program/program.h"

namespace hackc::program {

struct FlowValue {
  std::string name;
  ir::ValueType type;
  Buffer::Kind kind = Buffer::Kind::kWorkspace;  // of what launches make; kPrepared once settled
  const ir::SourceDecl* source = nullptr;        // of the module; null for what a launch makes
  std::string weight_name;                       // kWeight; holds "{layer}" when repeated
  int section = -1;  // the repeated section it lives in; -1 outside of any
  int first_layer = 0;
  // kWeight, kState, kPrepared: one tensor for each iteration of the section.
  bool per_iteration = false;
};

struct FlowLaunch {
  ir::LoopFn fn;
  std::vector<int> args;  // value of each buffer
};

// One iteration takes `inside`, the next takes this one's `yield`; after the last, `result` is the
// value.
struct FlowCarry {
  int initial = 0, inside = 0, yield = 0, result = 0;
};

struct FlowSection {
  int count = 1;  // runs of `launches`; carries only when more than one
  int first_layer = 0;
  int layer_step = 1;
  std::vector<FlowLaunch> launches;
  std::vector<FlowCarry> carries;
};

struct Flow {
  std::vector<ir::SymbolDecl> symbols;
  std::vector<FlowValue> values;
  std::vector<FlowSection> prepare;   // run once on weights; empty until SplitPrepare
  std::vector<FlowSection> sections;  // run for each request
  std::vector<int> outputs;
  std::vector<std::string> output_names;

  int AddValue(FlowValue value) {
    values.push_back(std::move(value));
    return static_cast<int>(values.size()) - 1;
  }
};

// HACKC_CHECKs what a verified module promises. `module` must outlive the flow.
Flow MakeFlow(const ir::LoopModule& module);

inline bool Writes(const ir::BufferDecl& buffer) { return buffer.access != ir::Access::kRead; }
inline bool Reads(const ir::BufferDecl& buffer) { return buffer.access != ir::Access::kWrite; }

// A launch that copies value `from` of the flow into value `to`.
FlowLaunch MakeCopy(const Flow& flow, int from, int to);

}  // namespace hackc::program
