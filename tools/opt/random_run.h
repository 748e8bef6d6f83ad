// SPDX-License-Identifier: MIT
// Runs a Unit in its level's interpreter on random data that depends on a seed and on names only,
// so that two units, of whatever levels, that mean the same give the same.
//
//   RandomRun run{.symbols = {{"seq", 7}}, .seed = 1};
//   HACKC_ASSIGN_OR_RETURN(Results before, Interpret(input, run));
//   HACKC_ASSIGN_OR_RETURN(Results after, Interpret(output, run));
//   HACKC_ASSIGN_OR_RETURN(double difference, LargestDifference(before, after));
//   difference <= kExactTolerance;
//
// Arithmetic is float64 and never rounds, so what is left are sums in another order.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/interp/tensor_data.h"
#include "tools/opt/unit.h"

namespace hackc::opt {

// Float64 keeps 16 digits; a sum of 10,000 terms in another order loses at most four of them.
inline constexpr double kExactTolerance = 1e-12;

struct RandomRun {
  std::map<std::string, int64_t> symbols;
  uint64_t seed = 1;
  // Kernels may be waiting for insert_barriers: they run in lockstep, and races are not looked for.
  bool barriers_may_lack = false;
};

// Declared symbols that `given` lacks get 5, or the bound nearest to it. INVALID_ARGUMENT for names
// that are not declared and for values out of bounds.
absl::StatusOr<std::map<std::string, int64_t>> CompleteSymbols(
    const Unit& unit, const std::map<std::string, int64_t>& given);

// Outputs ("%logits"), states ("state NAME") and, for kernels without a module, written buffers
// ("FUNCTION @y").
using Results = std::map<std::string, interp::TensorData>;
absl::StatusOr<Results> Interpret(const Unit& unit, const RandomRun& run);

// Relative to the largest magnitude of each result; infinite where one is NaN and the other is not.
// INTERNAL when names or sizes differ.
absl::StatusOr<double> LargestDifference(const Results& before, const Results& after);

}  // namespace hackc::opt
