// SPDX-License-Identifier: MIT
// IR of any level, as hackc-opt holds it: a whole model, or kernels one after another.
//
//   HACKC_ASSIGN_OR_RETURN(Unit unit, Parse(text));  // first line: `hackc loop 1`
//   LevelOf(unit) == Level::kLoop;
//   Verify(unit, {}).empty();
//   Print(unit);
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/kernel_verify.h"
#include "compiler/ir/loop_module.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/tensor.h"

namespace hackc::opt {

enum class Level : uint8_t { kGraph, kTensor, kLoop, kTile, kKernel, kCuda };
HACKC_ENUM_NAMES(Level, "graph", "tensor", "loop", "tile", "kernel", "cuda")
using ir::FromName;
using ir::Name;

using KernelFunction = std::variant<ir::LoopFn, ir::TileFn, ir::KernelFn>;

// Functions of one level. `module` launches them, one for each of its launches, in order; functions
// that were read from text stand alone.
struct Kernels {
  std::vector<KernelFunction> functions;
  std::optional<ir::LoopModule> module;
};
const ir::Function& FunctionOf(const KernelFunction& kernel);

using Unit = std::variant<ir::GraphModule, ir::TensorModule, Kernels>;

Level LevelOf(const Unit& unit);

// INVALID_ARGUMENT with line, column and what was expected.
absl::StatusOr<Unit> Parse(std::string_view text);

// Canonical text. Before the kernels of a module stand comments that say what each is launched
// with.
std::string Print(const Unit& unit);
// CUDA C++ of each kernel. The unit must be of Kernel level.
std::string PrintCuda(const Unit& unit);

// What the level's verifier says of each function or of the module.
std::vector<std::string> Verify(const Unit& unit, const ir::KernelLimits& limits);

}  // namespace hackc::opt
