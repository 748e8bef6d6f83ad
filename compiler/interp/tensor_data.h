// SPDX-License-Identifier: MIT
// Dense tensors that the interpreters compute on, and exact rounding of float64 to the storage
// dtypes.
//
//   TensorData x = TensorData::Zeros(ir::DType::kBF16, {2, 3});
//   x.At({1, 2}) = 1.0 / 3;
//   x.Round();  // every element to the nearest bfloat16, ties to even
//
// Thread safety: a plain value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/dtype.h"

namespace hackc::interp {

// The value of `dtype` nearest to `value` (floats: ties to even, overflow to infinity, subnormals
// kept; integers: towards zero, bool: 0 or 1).
double RoundTo(ir::DType dtype, double value);

// Row-major; integers are held exactly up to 2^53.
struct TensorData {
  ir::DType dtype = ir::DType::kF64;
  std::vector<int64_t> shape;
  std::vector<double> values;

  static TensorData Zeros(ir::DType dtype, std::vector<int64_t> shape);
  static TensorData Filled(ir::DType dtype, std::vector<int64_t> shape, double value);

  int64_t size() const { return static_cast<int64_t>(values.size()); }
  // Row-major offset of a coordinate; -1 when its rank or a component is out of range.
  int64_t Offset(const std::vector<int64_t>& coordinate) const;
  // Element at a coordinate that is known to be in range.
  double& At(const std::vector<int64_t>& coordinate) { return values[Offset(coordinate)]; }
  double At(const std::vector<int64_t>& coordinate) const { return values[Offset(coordinate)]; }
  void Round();  // every element to `dtype`
};

int64_t ElementCount(const std::vector<int64_t>& shape);
std::string ShapeText(ir::DType dtype, const std::vector<int64_t>& shape);  // "bf16[2, 3]"

}  // namespace hackc::interp
