// SPDX-License-Identifier: MIT
#include "compiler/interp/tensor_data.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hackc::interp {
namespace {

// Rounds to `digits` significant bits (the hidden one included) with exponents in [minimum,
// maximum]. Scaling by powers of two is exact, so the one rounding is that of nearbyint: to
// nearest, ties to even.
double RoundFloat(double value, int digits, int minimum, int maximum) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), minimum);
  const int quantum = exponent - (digits - 1);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -quantum)), quantum);
  if (std::abs(rounded) < std::ldexp(1.0, maximum + 1)) return rounded;
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

}  // namespace

double RoundTo(ir::DType dtype, double value) {
  switch (dtype) {
    case ir::DType::kF64: return value;
    case ir::DType::kF32: return static_cast<float>(value);
    case ir::DType::kBF16: return RoundFloat(value, 8, -126, 127);
    case ir::DType::kF16: return RoundFloat(value, 11, -14, 15);
    case ir::DType::kI64:
    case ir::DType::kI32: return std::trunc(value);
    case ir::DType::kBool: return value != 0 ? 1 : 0;
  }
  return value;
}

TensorData TensorData::Filled(ir::DType dtype, std::vector<int64_t> shape, double value) {
  TensorData tensor{dtype, std::move(shape), {}};
  tensor.values.assign(ElementCount(tensor.shape), value);
  return tensor;
}

TensorData TensorData::Zeros(ir::DType dtype, std::vector<int64_t> shape) {
  return Filled(dtype, std::move(shape), 0);
}

int64_t TensorData::Offset(const std::vector<int64_t>& coordinate) const {
  if (coordinate.size() != shape.size()) return -1;
  int64_t offset = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (coordinate[i] < 0 || coordinate[i] >= shape[i]) return -1;
    offset = offset * shape[i] + coordinate[i];
  }
  return offset;
}

void TensorData::Round() {
  for (double& value : values) value = RoundTo(dtype, value);
}

int64_t ElementCount(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

std::string ShapeText(ir::DType dtype, const std::vector<int64_t>& shape) {
  return absl::StrCat(std::string(ir::Name(dtype)), "[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace hackc::interp
