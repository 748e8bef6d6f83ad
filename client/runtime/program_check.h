// SPDX-License-Identifier: MIT
// Whether a Program is one that can be launched: every index in range, every contract complete, nothing
// written that must not be. A Program that passes is safe to walk without further checks of its form;
// formulas and addresses are judged when the symbols' values are known.
//
//   HACKC_RETURN_IF_ERROR(CheckProgram(program));
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/runtime/dim_expr.h"
#include "hackc/v1/program.pb.h"

namespace hackc::client {

// INVALID_ARGUMENT with the path of the field at fault. Checked are
//   buffers: id is the index, known dtype, repetition only of WEIGHT and PREPARED, unique caller names
//   kernels: three formulas and extents, parameters in order without overlap, sizes that fit their kind,
//            alignments that are powers of two, symbols that the program has, launch limits
//   steps: indices, one argument for each pointer parameter, repeated buffers only inside a repetition
//          that they cover, writes only to OUTPUT, WORKSPACE and STATE (prepare: only to PREPARED)
//   entry points: unique names, inputs and outputs of the right kind
absl::Status CheckProgram(const v1::Program& program);

// One launch of a step list with repetitions unrolled; `iteration` is that of the innermost repetition.
struct FlatLaunch {
  const v1::Launch* launch;
  uint32_t iteration;
};
std::vector<FlatLaunch> Flatten(const google::protobuf::RepeatedPtrField<v1::Step>& steps);

// Bytes of one element; 0 for an unknown dtype.
int64_t ElementBytes(v1::DType dtype);

// Shape and bytes of one tensor of a buffer. Errors name the buffer.
absl::StatusOr<std::vector<int64_t>> EvaluateShape(const v1::Buffer& buffer,
                                                   const SymbolValues& symbols);
absl::StatusOr<int64_t> EvaluateBytes(const v1::Buffer& buffer, const SymbolValues& symbols);

// Whether the parameter takes an argument of the launch (a pointer, or the base of a tensor map).
inline bool TakesArgument(const v1::Param& param) { return param.kind() != v1::Param::SYMBOL_I32; }

}  // namespace hackc::client
