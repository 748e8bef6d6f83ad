// SPDX-License-Identifier: MIT
// Element types of every IR. Index arithmetic is kI32 in text and code; interpreters evaluate it in
// 64 bits.
//
//   Name(DType::kBF16) == "bf16";  FromName<DType>("bf16") == DType::kBF16;
//   SizeOf(DType::kBF16) == 2
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>

#include "compiler/ir/fields.h"

namespace hackc::ir {

enum class DType : uint8_t { kF64, kF32, kBF16, kF16, kI64, kI32, kBool };
HACKC_ENUM_NAMES(DType, "f64", "f32", "bf16", "f16", "i64", "i32", "bool")

constexpr int SizeOf(DType dtype) {  // bytes
  constexpr int kSizes[] = {8, 4, 2, 2, 8, 4, 1};
  return kSizes[static_cast<size_t>(dtype)];
}
constexpr bool IsFloat(DType dtype) { return dtype <= DType::kF16; }
constexpr bool IsInteger(DType dtype) { return dtype == DType::kI32 || dtype == DType::kI64; }

}  // namespace hackc::ir
