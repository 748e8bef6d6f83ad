// SPDX-License-Identifier: MIT
#include "compiler/program/constant_bytes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace hackc::program {
namespace {

void Append(auto value, std::string& out) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// IEEE bits of `value` in 16 bits of which `mantissa` hold the fraction.
uint16_t HalfBits(double value, int mantissa) {
  const int exponent_bits = 15 - mantissa;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const int infinity = ((1 << exponent_bits) - 1) << mantissa;
  if (std::isnan(value)) return static_cast<uint16_t>(infinity | 1 << (mantissa - 1));
  value = std::fabs(value);
  if (std::isinf(value)) return static_cast<uint16_t>(sign | infinity);
  // In units of the last place; below the smallest normal number the unit stays that of subnormals.
  int exponent = value == 0 ? 1 - bias : std::max(std::ilogb(value), 1 - bias);
  auto units = static_cast<int64_t>(std::nearbyint(std::ldexp(value, mantissa - exponent)));
  // A normal number has 2^mantissa units or more; the carry of rounding up moves on to the
  // exponent.
  int64_t bits = units + (static_cast<int64_t>(exponent + bias - 1) << mantissa);
  return static_cast<uint16_t>(sign | std::min<int64_t>(bits, infinity));
}

}  // namespace

std::string ConstantBytes(const std::vector<double>& values, ir::DType dtype) {
  std::string bytes;
  for (double value : values) {
    switch (dtype) {
      case ir::DType::kF64: Append(value, bytes); break;
      case ir::DType::kF32: Append(static_cast<float>(value), bytes); break;
      case ir::DType::kBF16: Append(HalfBits(value, 7), bytes); break;
      case ir::DType::kF16: Append(HalfBits(value, 10), bytes); break;
      case ir::DType::kI64: Append(static_cast<int64_t>(value), bytes); break;
      case ir::DType::kI32: Append(static_cast<int32_t>(value), bytes); break;
      case ir::DType::kBool: Append(static_cast<uint8_t>(value != 0), bytes); break;
    }
  }
  return bytes;
}

}  // namespace hackc::program
