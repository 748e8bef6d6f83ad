// SPDX-License-Identifier: MIT
// The check that makes hackc trusted: one golden model through every level of the compiler.
//
//   HACKC_ASSIGN_OR_RETURN(Model model, ReadModel(folder));
//   Outcome outcome = CheckLevel(model, CheckedLevel::kKernel, CheckedDType::kBFloat16);
//   outcome.ok(); outcome.error; outcome.bound;
//
// A level runs the same calls: the whole prompt; the greedy tokens one at a time over its cache;
// from an empty cache two sequences at once, in two pieces and then one token; and two tokens each
// of many sequences, so that every entry point runs. Compared are the logits of every position. A
// dynamic rope takes one sequence, so of such a model only the prompt and the greedy tokens run.
//
// - Graph, against the stored truth: the prompt's and the steps' logits and each layer's hidden
//   state.
// - Tensor, against Graph.
// - Loop, tile and kernel, against Graph: the Program that a client would load, with its prepared
//   weights, workspace and both entry points, each kernel in the interpreter of that level
//   (program_run.h).
// float64 is arithmetic that never rounds, at level kernel over the kernels that are compiled for
// float32 and those for bfloat16. The others round as the GPU does, and are compared with a Graph
// that rounds where they do.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/compile.h"
#include "tools/golden/model.h"

namespace hackc::golden {

enum class CheckedLevel : uint8_t { kGraph, kTensor, kLoop, kTile, kKernel, kGpu };
inline constexpr std::array<std::string_view, 6> kCheckedLevelNames = {"graph", "tensor", "loop",
                                                                       "tile",  "kernel", "gpu"};
enum class CheckedDType : uint8_t { kFloat64, kFloat32, kBFloat16, kFloat16 };
inline constexpr std::array<std::string_view, 4> kCheckedDTypeNames = {"float64", "float32",
                                                                       "bfloat16", "float16"};

struct Outcome {
  double error = 0;     // the largest, see Difference
  double bound = 0;     // how large it may be
  std::string problem;  // why there is no error to show; or what was not checked
  bool ok() const { return problem.empty() && error <= bound; }
};

// One call of the model: token ids [batch, seq], after `past` tokens that are in the cache, or
// lengths[b] <= past.
struct Call {
  interp::TensorData ids;
  int64_t past = 0;
  std::vector<int64_t> lengths = {};
};
// Those with a truth in the golden file: the prompt and the greedy steps, whose logits are [tokens,
// vocabulary].
std::vector<Call> TrueCalls(const Model& model);

// A dynamic rope follows the length of a call, so the front end takes whole prompts, one at a time,
// and longer ones than the cache holds before a call.
bool TakesOneSequence(const Model& model);
int64_t LongestPast(const Model& model);
int64_t LongestCall(const Model& model);

// Of a call, by the names of a Program's inputs.
std::map<std::string, interp::TensorData> InputsOf(const Call& call);

// What is compiled for the check. INVALID_ARGUMENT for an architecture that is not known, with the
// field.
absl::StatusOr<Plan> PlanFor(const Model& model, program::DType storage);

// Logits of one call, of all its tokens or of its last one; with past 0 it starts from an empty
// cache.
using RunCall = std::function<absl::StatusOr<interp::TensorData>(const Call& call)>;
// Runs TrueCalls and compares with the truth: for levels that are no interpreter.
Outcome CheckAgainstTruth(const Model& model, const RunCall& run, double bound);
// Of rounding to storage and of the truth itself.
absl::StatusOr<double> TruthBound(const Model& model, CheckedDType dtype);

// Any level but kGpu.
Outcome CheckLevel(const Model& model, CheckedLevel level, CheckedDType dtype);

}  // namespace hackc::golden
