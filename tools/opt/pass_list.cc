// SPDX-License-Identifier: MIT
#include "tools/opt/pass_list.h"

#include <algorithm>
#include <utility>

#include "compiler/ir/loop_verify.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/check_schedule.h"
#include "compiler/schedule/choose_schedule.h"
#include "compiler/support/cat.h"
#include "compiler/support/internal_error.h"
#include "compiler/support/status_macros.h"

namespace hackc::opt {
namespace {

template <typename T>
constexpr Level LevelOfType() {
  if constexpr (std::is_same_v<T, ir::GraphModule>) return Level::kGraph;
  if constexpr (std::is_same_v<T, ir::TensorModule>) return Level::kTensor;
  if constexpr (std::is_same_v<T, ir::LoopModule> || std::is_same_v<T, ir::LoopFn>) {
    return Level::kLoop;
  }
  if constexpr (std::is_same_v<T, ir::TileFn>) return Level::kTile;
  return Level::kKernel;
}

Unit ToUnit(ir::GraphModule module) { return module; }
Unit ToUnit(ir::TensorModule module) { return module; }
Unit ToUnit(ir::LoopModule module) {
  Kernels kernels;
  for (const ir::LoopSegment& segment : module.segments) {
    for (const ir::LoopLaunch& launch : segment.ops) kernels.functions.push_back(launch.fn);
  }
  kernels.module = std::move(module);
  return kernels;
}

template <typename Target, typename Source, typename... Options>
Pass Of(std::string_view name, Target (*function)(const Source&, Options...)) {
  return {std::string(name), LevelOfType<Source>(), LevelOfType<Target>(),
          [function](const Unit& unit, const schedule::Target& target) -> absl::StatusOr<Unit> {
            if constexpr (std::is_same_v<Source, ir::LoopModule>) {
              // Functions that stand alone are no model: nothing to do.
              const auto& module = std::get<Kernels>(unit).module;
              if (!module) return unit;
              if constexpr (sizeof...(Options) > 0) {
                return ToUnit(function(*module, {target.multiprocessors}));
              } else {
                return ToUnit(function(*module));
              }
            } else {
              return ToUnit(function(std::get<Source>(unit)));
            }
          }};
}

// `transform` for each function, with the name of the one at fault.
template <typename Source, typename Transform>
absl::StatusOr<Unit> ForEachKernel(const Unit& unit, Transform&& transform) {
  Kernels kernels = std::get<Kernels>(unit);
  for (KernelFunction& kernel : kernels.functions) {
    const std::string name = FunctionOf(kernel).name;
    try {
      auto result = transform(std::get<Source>(kernel));
      if (!result.ok()) {
        return absl::Status(result.status().code(),
                            Cat("kernel ", name, ": ", std::string(result.status().message())));
      }
      kernel = *std::move(result);
    } catch (const InternalError& error) {
      throw InternalError(Cat("kernel ", name, ": ", error.what()));
    }
  }
  return kernels;
}

template <typename Target, typename Source>
Pass Of(std::string_view name, absl::StatusOr<Target> (*function)(const Source&)) {
  return {std::string(name), LevelOfType<Source>(), LevelOfType<Target>(),
          [function](const Unit& unit, const schedule::Target&) {
            return ForEachKernel<Source>(unit, function);
          }};
}

absl::StatusOr<Unit> ChooseSchedules(const Unit& unit, const schedule::Target& target) {
  return ForEachKernel<ir::LoopFn>(unit, [&](const ir::LoopFn& loop) -> absl::StatusOr<ir::TileFn> {
    HACKC_ASSIGN_OR_RETURN(ir::Schedule schedule, schedule::ChooseSchedule(loop, target));
    return ir::TileFn{loop.fn, std::move(schedule)};
  });
}

// A schedule that a text brings fits its nest; those of other nests are checked by the passes that
// made them.
absl::Status CheckSchedules(const Unit& unit, const schedule::Target& target) {
  for (const KernelFunction& kernel : std::get<Kernels>(unit).functions) {
    const auto* tile = std::get_if<ir::TileFn>(&kernel);
    if (tile == nullptr || !ir::VerifyLoop({tile->fn}).empty()) continue;
    HACKC_RETURN_IF_ERROR(schedule::CheckSchedule({tile->fn}, tile->schedule, target));
  }
  return absl::OkStatus();
}

bool AnySplit(const Unit& unit) {
  const auto& functions = std::get<Kernels>(unit).functions;
  return std::any_of(functions.begin(), functions.end(),
                     [](const KernelFunction& kernel) { return IsSplit(FunctionOf(kernel).body); });
}

}  // namespace

const std::vector<Pass>& Passes() {
  static const auto* table = [] {
    auto* passes = new std::vector<Pass>;
    const auto add = [&](const passes::Pass& pass) {
      std::visit([&](auto* run) { passes->push_back(Of(pass.name, run)); }, pass.run);
    };
    for (const passes::Pass& pass : passes::ModulePasses()) add(pass);
    passes->push_back({"choose_schedule", Level::kLoop, Level::kTile, ChooseSchedules});
    for (const passes::Pass& pass : passes::KernelPasses()) add(pass);
    return passes;
  }();
  return *table;
}

absl::StatusOr<Unit> RunPass(std::string_view name, const Unit& unit,
                             const schedule::Target& target) {
  const auto pass =
      std::find_if(Passes().begin(), Passes().end(), [&](const Pass& p) { return p.name == name; });
  if (pass == Passes().end()) {
    std::string names;
    for (const Pass& known : Passes()) names += (names.empty() ? "" : ", ") + known.name;
    return absl::NotFoundError(Cat("there is no pass ", name, "; there are ", names));
  }
  const Level level = LevelOf(unit);
  try {
    if (pass->takes == Level::kTile && level == Level::kLoop) {
      HACKC_ASSIGN_OR_RETURN(Unit scheduled, ChooseSchedules(unit, target));
      return pass->run(scheduled, target);
    }
    if (pass->takes != level) {
      return absl::FailedPreconditionError(
          Cat("pass ", name, " takes ", Name(pass->takes), " IR, got ", Name(level), " IR"));
    }
    if (level == Level::kTile) HACKC_RETURN_IF_ERROR(CheckSchedules(unit, target));
    return pass->run(unit, target);
  } catch (const std::exception& error) {  // InternalError, or the standard library's
    return absl::InternalError(Cat("pass ", name, ": ", error.what()));
  }
}

std::vector<std::string> DefaultPasses(const Unit& unit, Level level) {
  const Level from = LevelOf(unit);
  std::vector<std::string> names;
  if (from == Level::kKernel) return names;
  for (const Pass& pass : Passes()) {
    if (pass.takes < from || pass.gives > level) continue;
    if (from == Level::kTile && pass.gives == Level::kTile && AnySplit(unit)) continue;
    names.push_back(pass.name);
  }
  return names;
}

bool IsSplit(const ir::Block& body) {
  return std::any_of(body.begin(), body.end(), [](const ir::Stmt& s) {
    const auto* loop = ir::As<ir::For>(s);
    return loop && (loop->kind != ir::LoopKind::kSequential || IsSplit(loop->body));
  });
}

}  // namespace hackc::opt
