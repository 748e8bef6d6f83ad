// SPDX-License-Identifier: MIT
// What each scalar operation means, for the interpreters of every level.
//
//   ApplyFloat(BinaryOp::kMax, 1.0, 2.0) == 2.0
//   ApplyInteger(BinaryOp::kFloorDiv, -7, 2) == -4      // nullopt for a division by zero
//
// Thread safety: pure functions.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "compiler/interp/tensor_data.h"
#include "compiler/ir/expr.h"

namespace hackc::interp {

enum class Arithmetic : uint8_t {
  kExact,     // float64 throughout; casts and stores do not round
  kStorage,   // float64 operations; casts and stores round to their dtype
  kHardware,  // every operation rounds to its dtype, as float32 arithmetic of the GPU
};

double ApplyFloat(ir::UnaryOp op, double a);
double ApplyFloat(ir::BinaryOp op, double a, double b);  // comparisons give 0 or 1
int64_t ApplyInteger(ir::UnaryOp op, int64_t a);         // kNeg, kAbs, kNot
// 64 bits wide, wrapping; comparisons and logic give 0 or 1; nullopt: division by zero or a shift
// out of range.
std::optional<int64_t> ApplyInteger(ir::BinaryOp op, int64_t a, int64_t b);

// A float of type `from` as an integer or bool, as `cvt` of the GPU does it: towards 0, what is too
// large is the largest there is.
int64_t ToInteger(ir::DType to, ir::DType from, double value);

// Rounding of an operation's result of type `dtype`.
inline double RoundResult(Arithmetic arithmetic, ir::DType dtype, double value) {
  if (arithmetic != Arithmetic::kHardware) return value;
  return dtype == ir::DType::kF32 ? static_cast<float>(value) : RoundTo(dtype, value);
}
// Rounding of a cast or a store to `dtype`.
inline double RoundStored(Arithmetic arithmetic, ir::DType dtype, double value) {
  if (arithmetic == Arithmetic::kExact && ir::IsFloat(dtype)) return value;
  const float single = static_cast<float>(value);
  if (dtype == ir::DType::kF32) return single;
  if (dtype == ir::DType::kBF16 && single == value) {
    // Rounded to the upper half, ties to even; carries run into the exponent, as they must.
    uint32_t bits = std::bit_cast<uint32_t>(single);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    return std::bit_cast<float>(bits);
  }
  return RoundTo(dtype, value);
}

}  // namespace hackc::interp
