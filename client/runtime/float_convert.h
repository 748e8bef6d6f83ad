// SPDX-License-Identifier: MIT
// float32, bfloat16 and float16 into one another, rounding to nearest with ties to even, as the GPU
// and PyTorch do; infinities, NaN and subnormal numbers included.
//
//   HACKC_RETURN_IF_ERROR(
//       ConvertFloats(v1::DTYPE_BFLOAT16, source, v1::DTYPE_FLOAT32, target, count));
//
// Neither pointer needs any alignment: tensors inside a file have none. Thread safety: pure
// functions.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "hackc/v1/model.pb.h"

namespace hackc::client {

uint16_t FloatToBFloat16(float value);
float BFloat16ToFloat(uint16_t bits);
uint16_t FloatToFloat16(float value);
float Float16ToFloat(uint16_t bits);

// INVALID_ARGUMENT for a dtype that is none of the three.
absl::Status ConvertFloats(v1::DType from, const void* source, v1::DType to, void* target,
                           int64_t count);

}  // namespace hackc::client
