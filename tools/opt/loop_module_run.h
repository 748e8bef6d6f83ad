// SPDX-License-Identifier: MIT
// Runs a LoopModule as a client would: kernel after kernel, each with the buffers of its arguments.
//
//   ASSIGN(outputs, RunLoopModule(loops, run));   // run as for RunGraph
//   ASSIGN(outputs, RunLaunches(loops, run, [](size_t number, auto& launch, auto& run) { ... }));
//
// Thread safety: one run, one thread.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "compiler/interp/loop_interpreter.h"
#include "compiler/interp/module_run.h"
#include "compiler/ir/loop_module.h"

namespace hackc::opt {

// Runs the kernel of the launch with this number, counted over all segments.
using LaunchRunner = std::function<absl::Status(size_t number, const ir::LoopLaunch& launch,
                                                interp::FunctionRun& run)>;

// A launch as an operation that RunModule knows: what it makes first.
struct LaunchOp {
  std::string out;
  size_t number;
  const ir::LoopLaunch* launch;
};

inline absl::StatusOr<interp::TensorData> RunLaunch(const LaunchOp& op, const LaunchRunner& runner,
                                                    interp::Environment& environment) {
  interp::FunctionRun run;
  run.symbols = environment.run().symbols;
  run.arithmetic = environment.run().round_to_storage ? interp::Arithmetic::kStorage
                                                      : interp::Arithmetic::kExact;
  const ir::Function& fn = op.launch->fn.fn;
  for (size_t i = 0; i < fn.buffers.size(); ++i) {
    if (fn.buffers[i].access == ir::Access::kWrite) continue;
    const interp::TensorData* data = environment.Find(op.launch->args[i]);
    if (!data) return absl::InternalError(Cat(fn.name, " reads unknown %", op.launch->args[i]));
    run.buffers[fn.buffers[i].name] = *data;
  }
  HACKC_RETURN_IF_ERROR(runner(op.number, *op.launch, run));
  const interp::TensorData* first = nullptr;
  for (size_t i = 0; i < fn.buffers.size(); ++i) {
    if (fn.buffers[i].access == ir::Access::kRead) continue;
    const interp::TensorData& made = run.buffers.at(fn.buffers[i].name);
    if (op.launch->args[i] == op.out || !first) first = &made;
    if (fn.buffers[i].access == ir::Access::kReadWrite) {
      *environment.Find(op.launch->args[i]) = made;  // a state, in place
    } else {
      environment.Set(op.launch->args[i], made);
    }
  }
  if (!first) return absl::InternalError(Cat(fn.name, " makes nothing"));
  return *first;
}

inline absl::StatusOr<std::map<std::string, interp::TensorData>> RunLaunches(
    const ir::LoopModule& loops, const interp::RunInputs& run, const LaunchRunner& runner) {
  ir::Module<LaunchOp> module{loops.name, loops.symbols, loops.sources, {}, loops.outputs};
  int updates = 0;
  size_t number = 0;
  for (const ir::LoopSegment& segment : loops.segments) {
    ir::Segment<LaunchOp> copy{segment};
    for (const ir::LoopLaunch& launch : segment.ops) {
      copy.ops.push_back(
          {launch.results.empty() ? "update." + std::to_string(updates++) : launch.results[0].first,
           number++, &launch});
    }
    module.segments.push_back(std::move(copy));
  }
  return interp::RunModule(module, run, [&](const LaunchOp& op, interp::Environment& environment) {
    return RunLaunch(op, runner, environment);
  });
}

// The same with the Loop IR of each launch.
inline absl::StatusOr<std::map<std::string, interp::TensorData>> RunLoopModule(
    const ir::LoopModule& loops, const interp::RunInputs& run) {
  return RunLaunches(loops, run,
                     [](size_t, const ir::LoopLaunch& launch, interp::FunctionRun& function) {
                       return interp::RunLoop(launch.fn, function);
                     });
}

}  // namespace hackc::opt
