// SPDX-License-Identifier: MIT
#include "client/runtime/float_convert.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace hackc::client {
namespace {

uint32_t Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

template <typename From, typename To, typename Function>
void Each(const void* source, void* target, int64_t count, Function function) {
  const char* in = static_cast<const char*>(source);
  char* out = static_cast<char*>(target);
  for (int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, in + i * sizeof(From), sizeof(From));
    To result = function(value);
    std::memcpy(out + i * sizeof(To), &result, sizeof(To));
  }
}

}  // namespace

uint16_t FloatToBFloat16(float value) {
  uint32_t bits = Bits(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);  // stays NaN
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float BFloat16ToFloat(uint16_t bits) { return FromBits(uint32_t{bits} << 16); }

uint16_t FloatToFloat16(float value) {
  constexpr uint32_t kSmallestNormal = 113u << 23;  // 2^-14
  constexpr uint32_t kInfinityFrom = 0x477ff000;    // 65520, half way from the largest number
  const uint32_t sign = (Bits(value) >> 16) & 0x8000;
  uint32_t magnitude = Bits(value) & 0x7fffffff;
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00);
  if (magnitude >= kInfinityFrom) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < kSmallestNormal) {
    // Beside 0.5 a float's last bit is worth 2^-24, as a subnormal half's is: the addition rounds.
    return static_cast<uint16_t>(sign | (Bits(std::fabs(value) + 0.5f) - Bits(0.5f)));
  }
  magnitude += 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((magnitude - (112u << 23)) >> 13));
}

float Float16ToFloat(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = (bits >> 10) & 31, mantissa = bits & 0x3ff;
  if (exponent == 0) {
    float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign ? -magnitude : magnitude;
  }
  if (exponent == 31) return FromBits(sign | 0x7f800000 | (mantissa << 13));
  return FromBits(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

absl::Status ConvertFloats(v1::DType from, const void* source, v1::DType to, void* target,
                           int64_t count) {
  const auto half_width = [](v1::DType dtype) {
    return dtype == v1::DTYPE_BFLOAT16 || dtype == v1::DTYPE_FLOAT16;
  };
  const auto widen = [from](uint16_t bits) {
    return from == v1::DTYPE_BFLOAT16 ? BFloat16ToFloat(bits) : Float16ToFloat(bits);
  };
  const auto narrow = [to](float value) {
    return to == v1::DTYPE_BFLOAT16 ? FloatToBFloat16(value) : FloatToFloat16(value);
  };
  if (from == to && (from == v1::DTYPE_FLOAT32 || half_width(from))) {
    std::memcpy(target, source, count * (half_width(from) ? 2 : 4));
  } else if (from == v1::DTYPE_FLOAT32 && half_width(to)) {
    Each<float, uint16_t>(source, target, count, narrow);
  } else if (half_width(from) && to == v1::DTYPE_FLOAT32) {
    Each<uint16_t, float>(source, target, count, widen);
  } else if (half_width(from) && half_width(to)) {
    Each<uint16_t, uint16_t>(source, target, count,
                             [&](uint16_t bits) { return narrow(widen(bits)); });
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("no conversion from ", v1::DType_Name(from), " to ", v1::DType_Name(to)));
  }
  return absl::OkStatus();
}

}  // namespace hackc::client
