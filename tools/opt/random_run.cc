// SPDX-License-Identifier: MIT
#include "tools/opt/random_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "compiler/interp/graph_interpreter.h"
#include "compiler/interp/kernel_interpreter.h"
#include "compiler/interp/tensor_interpreter.h"
#include "compiler/interp/tile_interpreter.h"
#include "compiler/ir/rewrite.h"
#include "compiler/passes/tile/split_axes.h"
#include "compiler/support/cat.h"
#include "compiler/support/internal_error.h"
#include "compiler/support/status_macros.h"
#include "tools/opt/loop_module_run.h"
#include "tools/opt/pass_list.h"

namespace hackc::opt {
namespace {

using interp::FunctionRun;
using interp::TensorData;

int64_t Eval(const ir::Expr& extent, const std::map<std::string, int64_t>& symbols) {
  const ir::Expr value = ir::Rewrite(extent, [&](const ir::Expr& e) -> ir::Expr {
    const auto* symbol = ir::As<ir::Symbol>(e);
    return symbol ? ir::IntLit(symbols.at(symbol->name)) : nullptr;
  });
  const auto result = ir::AsInt(value);
  HACKC_CHECK(result.has_value()) << "an extent is not over symbols";
  return *result;
}

// Normal floats; integers below 50, distinct while there are so many: ids, lengths and pages, which
// readers clamp and of which no two may be the same page.
TensorData Random(const RandomRun& run, const std::string& name, ir::DType dtype,
                  const std::vector<ir::Expr>& extents) {
  std::vector<int64_t> shape;
  for (const ir::Expr& extent : extents) shape.push_back(Eval(extent, run.symbols));
  TensorData data = TensorData::Zeros(dtype, shape);
  const std::string key = Cat(run.seed, " ", name);
  std::seed_seq seeds(key.begin(), key.end());
  std::mt19937 generator(seeds);
  std::normal_distribution<double> normal;
  uint32_t next = generator() % 50;
  for (double& value : data.values) {
    next = (next + 17) % 50;
    value = ir::IsFloat(dtype) ? normal(generator) : static_cast<double>(next);
  }
  data.Round();
  return data;
}

// Chunks of a softmax overhang their axis until split_axes has placed the guards.
absl::Status RunAnyTile(const ir::TileFn& tile, FunctionRun& run) {
  FunctionRun attempt = run;
  absl::Status status = interp::RunTile(tile, attempt);
  if (!status.ok() && !IsSplit(tile.fn.body)) {
    absl::StatusOr<ir::TileFn> split = passes::SplitAxes(tile);
    return split.ok() ? interp::RunTile(*split, run) : split.status();
  }
  run = std::move(attempt);
  return status;
}

absl::Status RunFunction(const KernelFunction& kernel, bool barriers_may_lack, FunctionRun& run) {
  if (const auto* loop = std::get_if<ir::LoopFn>(&kernel)) return interp::RunLoop(*loop, run);
  if (const auto* tile = std::get_if<ir::TileFn>(&kernel)) return RunAnyTile(*tile, run);
  return interp::RunKernel(std::get<ir::KernelFn>(kernel), run, {.find_races = !barriers_may_lack});
}

// `interpret(RunInputs)` on random inputs, weights and states of a module of any level.
template <typename Module, typename Interpret>
absl::StatusOr<Results> RunRandomModule(const Module& module, const RandomRun& run,
                                        Interpret&& interpret) {
  std::map<std::string, TensorData> weights, states;
  interp::RunInputs inputs;
  inputs.symbols = run.symbols;
  const auto add = [&](const ir::SourceDecl& source, int layer) {
    const std::string name =
        interp::WithLayer(source.weight_name.empty() ? source.name : source.weight_name, layer);
    const auto make = [&] { return Random(run, name, source.type.dtype, source.type.shape); };
    if (source.kind == ir::SourceDecl::Kind::kInput) inputs.inputs[source.name] = make();
    if (source.kind == ir::SourceDecl::Kind::kWeight) weights[name] = make();
    if (source.kind == ir::SourceDecl::Kind::kState) states[name] = make();
  };
  for (const ir::SourceDecl& source : module.sources) add(source, 0);
  for (const auto& segment : module.segments) {
    for (int i = 0; i < segment.count; ++i) {
      for (const ir::SourceDecl& source : segment.sources) {
        add(source, segment.first_layer + i * segment.layer_step);
      }
    }
  }
  inputs.states = &states;
  inputs.weights = [&](const std::string& name) -> absl::StatusOr<const TensorData*> {
    const auto found = weights.find(name);
    if (found == weights.end()) return absl::NotFoundError(Cat("weight ", name));
    return &found->second;
  };
  auto outputs = interpret(inputs);
  if (!outputs.ok()) return outputs.status();
  Results results;
  for (auto& [name, data] : *outputs) results["%" + name] = std::move(data);
  for (auto& [name, data] : states) results["state " + name] = std::move(data);
  return results;
}

absl::StatusOr<Results> RunKernels(const Kernels& kernels, const RandomRun& run) {
  if (kernels.module) {
    return RunRandomModule(*kernels.module, run, [&](const interp::RunInputs& inputs) {
      return RunLaunches(*kernels.module, inputs,
                         [&](size_t number, const ir::LoopLaunch&, FunctionRun& function) {
                           return RunFunction(kernels.functions.at(number), run.barriers_may_lack,
                                              function);
                         });
    });
  }
  Results results;
  for (const KernelFunction& kernel : kernels.functions) {
    const ir::Function& fn = FunctionOf(kernel);
    FunctionRun function;
    function.symbols = run.symbols;
    for (const ir::BufferDecl& buffer : fn.buffers) {
      if (buffer.access == ir::Access::kWrite) continue;
      function.buffers[buffer.name] = Random(run, buffer.name, buffer.dtype, buffer.shape);
    }
    HACKC_RETURN_IF_ERROR(RunFunction(kernel, run.barriers_may_lack, function));
    for (const ir::BufferDecl& buffer : fn.buffers) {
      if (buffer.access == ir::Access::kRead) continue;
      results[Cat(fn.name, " @", buffer.name)] = std::move(function.buffers.at(buffer.name));
    }
  }
  return results;
}

std::vector<ir::SymbolDecl> SymbolsOf(const Unit& unit) {
  if (const auto* graph = std::get_if<ir::GraphModule>(&unit)) return graph->symbols;
  if (const auto* tensor = std::get_if<ir::TensorModule>(&unit)) return tensor->symbols;
  const auto& kernels = std::get<Kernels>(unit);
  if (kernels.module) return kernels.module->symbols;
  std::vector<ir::SymbolDecl> symbols;
  for (const KernelFunction& kernel : kernels.functions) {
    const ir::Function& fn = FunctionOf(kernel);
    symbols.insert(symbols.end(), fn.symbols.begin(), fn.symbols.end());
  }
  return symbols;
}

}  // namespace

absl::StatusOr<std::map<std::string, int64_t>> CompleteSymbols(
    const Unit& unit, const std::map<std::string, int64_t>& given) {
  std::map<std::string, int64_t> symbols;
  for (const ir::SymbolDecl& symbol : SymbolsOf(unit)) {
    const auto value = given.find(symbol.name);
    symbols[symbol.name] =
        value == given.end() ? std::clamp<int64_t>(5, symbol.min, symbol.max) : value->second;
    if (symbols[symbol.name] < symbol.min || symbols[symbol.name] > symbol.max) {
      return absl::InvalidArgumentError(Cat("symbol ", symbol.name, ": expected ", symbol.min, "..",
                                            symbol.max, ", got ", symbols[symbol.name]));
    }
  }
  for (const auto& [name, value] : given) {
    if (!symbols.count(name)) {
      return absl::InvalidArgumentError(Cat("symbol ", name, ": the IR declares no such symbol"));
    }
  }
  return symbols;
}

absl::StatusOr<Results> Interpret(const Unit& unit, const RandomRun& run) {
  if (const auto* graph = std::get_if<ir::GraphModule>(&unit)) {
    return RunRandomModule(*graph, run, [&](const interp::RunInputs& inputs) {
      return interp::RunGraph(*graph, inputs);
    });
  }
  if (const auto* tensor = std::get_if<ir::TensorModule>(&unit)) {
    return RunRandomModule(*tensor, run, [&](const interp::RunInputs& inputs) {
      return interp::RunTensor(*tensor, inputs);
    });
  }
  return RunKernels(std::get<Kernels>(unit), run);
}

absl::StatusOr<double> LargestDifference(const Results& before, const Results& after) {
  double largest = 0;
  if (before.size() != after.size()) {
    return absl::InternalError(Cat(before.size(), " results before, ", after.size(), " after"));
  }
  for (const auto& [name, truth] : before) {
    const auto found = after.find(name);
    if (found == after.end() || found->second.shape != truth.shape) {
      return absl::InternalError(Cat(name, ": is missing after, or has another shape"));
    }
    const std::vector<double>& got = found->second.values;
    double scale = std::numeric_limits<double>::min(), worst = 0;
    for (double value : truth.values) {
      if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
    }
    for (size_t i = 0; i < got.size(); ++i) {
      const double a = truth.values[i], b = got[i];
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      const double difference = std::abs(a - b);
      worst = std::isfinite(difference) ? std::max(worst, difference / scale)
                                        : std::numeric_limits<double>::infinity();
      if (std::isinf(worst)) return worst;
    }
    largest = std::max(largest, worst);
  }
  return largest;
}

}  // namespace hackc::opt
