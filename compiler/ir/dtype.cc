// SPDX-License-Identifier: MIT
#include "compiler/ir/dtype.h"

#include <array>

namespace hackc::ir {
namespace {

struct Entry {
  DType dtype;
  std::string_view name;
  int size;
};
constexpr std::array<Entry, 7> kTable = {{{DType::kF64, "f64", 8},
                                          {DType::kF32, "f32", 4},
                                          {DType::kBF16, "bf16", 2},
                                          {DType::kF16, "f16", 2},
                                          {DType::kI64, "i64", 8},
                                          {DType::kI32, "i32", 4},
                                          {DType::kBool, "bool", 1}}};

}  // namespace

std::string_view Name(DType dtype) { return kTable[static_cast<size_t>(dtype)].name; }

std::optional<DType> DTypeFromName(std::string_view name) {
  for (const Entry& entry : kTable) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
}

int SizeOf(DType dtype) { return kTable[static_cast<size_t>(dtype)].size; }

bool IsFloat(DType dtype) { return dtype <= DType::kF16; }

}  // namespace hackc::ir
