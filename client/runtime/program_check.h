// SPDX-License-Identifier: MIT
// Whether a Program is one that can be launched: every index in range, every contract complete,
// nothing written that must not be. A Program that passes is safe to walk without further checks of
// its form; formulas and addresses are judged when the symbols' values are known.
//
//   HACKC_RETURN_IF_ERROR(CheckProgram(program));
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/runtime/dim_expr.h"
#include "hackc/v1/program.pb.h"

namespace hackc::client {

// INVALID_ARGUMENT with the path of the field at fault. Checked are
//   buffers: id is the index, known dtype, repetition only of WEIGHT, PREPARED and STATE, unique
//     names
//            of what the caller binds
//   kernels: three formulas and extents, parameters in order without overlap, sizes that fit their
//     kind,
//            alignments that are powers of two, symbols that the program has, launch limits
//   steps: indices, one argument for each pointer parameter, repeated buffers only inside a
//     repetition
//          that they cover, writes only to OUTPUT, WORKSPACE and STATE (prepare: only to PREPARED)
//   entry points: unique names, inputs and outputs of the right kind, a range for every symbol or
//     for none
absl::Status CheckProgram(const v1::Program& program);

// One launch of a step list with repetitions unrolled; `iteration` is that of the innermost
// repetition.
struct FlatLaunch {
  const v1::Launch* launch;
  uint32_t iteration;
};
std::vector<FlatLaunch> Flatten(const google::protobuf::RepeatedPtrField<v1::Step>& steps);

// Tensors that a buffer stands for: one for each repetition, else one.
uint32_t Repetitions(const v1::Buffer& buffer);

// Name under which the caller knows one of them: "model.layers.3.mlp.up_proj.weight", "logits".
std::string TensorName(const v1::Buffer& buffer, uint32_t iteration);

// Whether the caller binds it at each run.
bool IsCallerBound(const v1::Buffer& buffer);

// Place of each buffer's first tensor in a list of all tensors that the caller binds; -1 for other
// buffers. The last element is the length of that list.
std::vector<int> CallerSlots(const v1::Program& program);

// Bytes of one element; 0 for an unknown dtype.
int64_t ElementBytes(v1::DType dtype);

// Shape and bytes of one tensor of a buffer. Errors name the buffer.
absl::StatusOr<std::vector<int64_t>> EvaluateShape(const v1::Buffer& buffer,
                                                   const SymbolValues& symbols);
absl::StatusOr<int64_t> EvaluateBytes(const v1::Buffer& buffer, const SymbolValues& symbols);

// Whether the parameter takes an argument of the launch (a pointer, or the base of a tensor map).
inline bool TakesArgument(const v1::Param& param) { return param.kind() != v1::Param::SYMBOL_I32; }

}  // namespace hackc::client
