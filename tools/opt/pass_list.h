// SPDX-License-Identifier: MIT
// Every pass by name, from both tables of the compiler (passes/pipeline.h),
// and `choose_schedule` between them, run on a Unit.
//
//   HACKC_ASSIGN_OR_RETURN(unit, RunPass("split_axes", unit, target));
//
// A pass over Tile IR that is given Loop IR gets the schedule that the target would choose.
// Thread safety: pure functions.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/target.h"
#include "tools/opt/unit.h"

namespace hackc::opt {

struct Pass {
  std::string name;
  Level takes = Level::kGraph;
  Level gives = Level::kGraph;
  std::function<absl::StatusOr<Unit>(const Unit&, const schedule::Target&)> run;
};

const std::vector<Pass>& Passes();  // in the order of the pipeline

// NOT_FOUND with all names for an unknown pass, FAILED_PRECONDITION for IR of a level that it does
// not take; INTERNAL when the pass broke off, or whatever else it says.
absl::StatusOr<Unit> RunPass(std::string_view name, const Unit& unit,
                             const schedule::Target& target);

// What the pipeline runs to bring IR such as `unit` to `level`. Tensor IR takes the Tensor passes,
// split Tile IR is not split again, and Kernel IR stays as it is.
std::vector<std::string> DefaultPasses(const Unit& unit, Level level);

// Whether split_axes has been at it: a loop says how it runs.
bool IsSplit(const ir::Block& body);

}  // namespace hackc::opt
