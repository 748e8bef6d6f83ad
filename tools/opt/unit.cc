// SPDX-License-Identifier: MIT
#include "tools/opt/unit.h"

#include <algorithm>
#include <functional>

#include "compiler/codegen/cuda_emitter.h"
#include "compiler/ir/graph_text.h"
#include "compiler/ir/graph_verify.h"
#include "compiler/ir/loop_verify.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/ir/tensor_text.h"
#include "compiler/ir/tensor_verify.h"
#include "compiler/ir/tile_verify.h"
#include "compiler/support/cat.h"
#include "compiler/support/internal_error.h"
#include "compiler/support/status_macros.h"

namespace hackc::opt {
namespace {

constexpr std::string_view kHeader = "hackc ";

// Where lines start that open a module or a function.
std::vector<size_t> Headers(std::string_view text) {
  std::vector<size_t> starts;
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at, kHeader.size()) == kHeader) starts.push_back(at);
    const size_t end = text.find('\n', at);
    at = end == std::string_view::npos ? text.size() : end + 1;
  }
  return starts;
}

std::string_view LevelWord(std::string_view header) {
  header.remove_prefix(kHeader.size());
  return header.substr(0, header.find_first_of(" \n"));
}

absl::StatusOr<KernelFunction> ParseFunction(Level level, std::string_view text) {
  switch (level) {
    case Level::kLoop: return ir::ParseLoop(text);
    case Level::kTile: return ir::ParseTile(text);
    default: return ir::ParseKernel(text);
  }
}

std::string PrintKernels(const Kernels& kernels,
                         const std::function<std::string(const KernelFunction&)>& print,
                         std::string_view comment) {
  std::string text;
  if (!kernels.module) {
    for (const KernelFunction& kernel : kernels.functions) text += print(kernel);
    return text;
  }
  size_t number = 0;
  for (const ir::LoopSegment& segment : kernels.module->segments) {
    text += Cat(comment, " segment ", segment.name, ", ", segment.count, " times\n");
    for (const ir::LoopLaunch& launch : segment.ops) {
      text += comment;
      for (size_t i = 0; i < launch.args.size(); ++i) text += (i ? ", " : " ") + launch.args[i];
      text += "\n" + print(kernels.functions.at(number++));
    }
  }
  return text;
}

}  // namespace

const ir::Function& FunctionOf(const KernelFunction& kernel) {
  return std::visit([](const auto& k) -> const ir::Function& { return k.fn; }, kernel);
}

Level LevelOf(const Unit& unit) {
  const auto* kernels = std::get_if<Kernels>(&unit);
  if (!kernels) return unit.index() == 0 ? Level::kGraph : Level::kTensor;
  if (kernels->functions.empty()) return Level::kLoop;
  return static_cast<Level>(static_cast<size_t>(Level::kLoop) + kernels->functions[0].index());
}

absl::StatusOr<Unit> Parse(std::string_view text) {
  const std::vector<size_t> starts = Headers(text);
  const std::optional<Level> level =
      starts.empty() ? std::nullopt : FromName<Level>(LevelWord(text.substr(starts[0])));
  if (!level || *level == Level::kCuda) {
    const size_t before = starts.empty() ? 0 : starts[0];
    return absl::InvalidArgumentError(Cat(
        "line ", 1 + std::count(text.begin(), text.begin() + before, '\n'),
        ", column 1: expected `hackc LEVEL 1`, LEVEL one of graph, tensor, loop, tile, kernel"));
  }
  if (*level == Level::kGraph) return ir::ParseGraph(text);
  if (*level == Level::kTensor) return ir::ParseTensor(text);
  Kernels kernels;
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t end = i + 1 < starts.size() ? starts[i + 1] : text.size();
    // Lines that went before keep their place, so that messages name the line of the whole text.
    const auto lines = std::count(text.begin(), text.begin() + starts[i], '\n');
    std::string part(i == 0 ? 0 : lines, '\n');
    part += text.substr(i == 0 ? 0 : starts[i], end - (i == 0 ? 0 : starts[i]));
    HACKC_ASSIGN_OR_RETURN(KernelFunction kernel, ParseFunction(*level, part));
    kernels.functions.push_back(std::move(kernel));
  }
  return kernels;
}

std::string Print(const Unit& unit) {
  if (const auto* graph = std::get_if<ir::GraphModule>(&unit)) return ir::Print(*graph);
  if (const auto* tensor = std::get_if<ir::TensorModule>(&unit)) return ir::Print(*tensor);
  return PrintKernels(
      std::get<Kernels>(unit),
      [](const KernelFunction& kernel) {
        return std::visit([](const auto& k) { return ir::Print(k); }, kernel);
      },
      "#");
}

std::string PrintCuda(const Unit& unit) {
  HACKC_CHECK(LevelOf(unit) == Level::kKernel) << "CUDA text of " << Name(LevelOf(unit)) << " IR";
  return PrintKernels(
      std::get<Kernels>(unit),
      [](const KernelFunction& kernel) {
        return codegen::EmitCuda(std::get<ir::KernelFn>(kernel)).text;
      },
      "//");
}

std::vector<std::string> Verify(const Unit& unit, const ir::KernelLimits& limits) {
  if (const auto* graph = std::get_if<ir::GraphModule>(&unit)) return ir::VerifyGraph(*graph);
  if (const auto* tensor = std::get_if<ir::TensorModule>(&unit)) return ir::VerifyTensor(*tensor);
  std::vector<std::string> errors;
  for (const KernelFunction& kernel : std::get<Kernels>(unit).functions) {
    std::vector<std::string> found;
    if (const auto* loop = std::get_if<ir::LoopFn>(&kernel)) found = ir::VerifyLoop(*loop);
    if (const auto* tile = std::get_if<ir::TileFn>(&kernel)) found = ir::VerifyTile(*tile);
    if (const auto* last = std::get_if<ir::KernelFn>(&kernel)) {
      found = ir::VerifyKernel(*last, limits);
    }
    errors.insert(errors.end(), found.begin(), found.end());
  }
  return errors;
}

}  // namespace hackc::opt
