// SPDX-License-Identifier: MIT
// Element types of every IR. Index arithmetic is kI32 in text and code; interpreters evaluate it in 64 bits.
//
//   Name(DType::kBF16) == "bf16";  SizeOf(DType::kBF16) == 2
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hackc::ir {

enum class DType : uint8_t { kF64, kF32, kBF16, kF16, kI64, kI32, kBool };

std::string_view Name(DType dtype);                         // "f32"
std::optional<DType> DTypeFromName(std::string_view name);  // inverse of Name
int SizeOf(DType dtype);                                    // bytes; kBool is 1
bool IsFloat(DType dtype);

}  // namespace hackc::ir
