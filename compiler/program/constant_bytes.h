// SPDX-License-Identifier: MIT
// The bytes of a constant as a device holds them: little-endian, row-major, rounded once (to
// nearest, ties to even) from the float64 of the IR.
//
//   ConstantBytes({1.0, 0.5}, ir::DType::kBF16)   // 80 3f 00 3f
//
// Thread safety: pure.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/dtype.h"

namespace hackc::program {

std::string ConstantBytes(const std::vector<double>& values, ir::DType dtype);

}  // namespace hackc::program
