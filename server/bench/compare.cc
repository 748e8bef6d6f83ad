// SPDX-License-Identifier: MIT
#include "server/bench/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "client/runtime/float_convert.h"
#include "client/runtime/guarded_memory.h"
#include "client/runtime/program_check.h"

namespace hackc::server {
namespace {

template <typename T>
T Take(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

double Element(v1::DType dtype, const char* bytes) {
  switch (dtype) {
    case v1::DTYPE_FLOAT32: return Take<float>(bytes);
    case v1::DTYPE_FLOAT64: return Take<double>(bytes);
    case v1::DTYPE_BFLOAT16: return client::BFloat16ToFloat(Take<uint16_t>(bytes));
    case v1::DTYPE_FLOAT16: return client::Float16ToFloat(Take<uint16_t>(bytes));
    case v1::DTYPE_INT32: return Take<int32_t>(bytes);
    case v1::DTYPE_INT64: return static_cast<double>(Take<int64_t>(bytes));
    default: return Take<uint8_t>(bytes);
  }
}

bool IsPoison(std::string_view element) {
  return std::all_of(element.begin(), element.end(), [](char byte) {
    return static_cast<unsigned char>(byte) == client::GuardedMemory::kPoison;
  });
}

}  // namespace

double AllowedError(v1::DType coarsest, int64_t longest_reduction) {
  const double unit = coarsest == v1::DTYPE_BFLOAT16  ? 0x1p-8
                      : coarsest == v1::DTYPE_FLOAT16 ? 0x1p-11
                                                      : 0x1p-24;
  const auto terms = static_cast<double>(longest_reduction);
  return 4 * unit + 0x1p-24 * (8 * std::sqrt(terms) + terms / 4);
}

std::string Difference(v1::DType dtype, std::string_view actual, std::string_view expected,
                       int64_t row, double allowed) {
  const int64_t width = client::ElementBytes(dtype);
  const int64_t count = static_cast<int64_t>(expected.size()) / width;
  row = std::max<int64_t>(row, 1);
  for (int64_t start = 0; start < count; start += row) {
    const int64_t end = std::min(start + row, count);
    double scale = 0;
    for (int64_t i = start; i < end; ++i) {
      const double value = std::abs(Element(dtype, &expected[i * width]));
      if (std::isfinite(value)) scale = std::max(scale, value);
    }
    for (int64_t i = start; i < end; ++i) {
      const std::string_view want = expected.substr(i * width, width);
      if (actual.substr(i * width, width) == want) continue;
      const double a = Element(dtype, &actual[i * width]), b = Element(dtype, want.data());
      if (IsPoison(want)) return absl::StrCat("[", i, "] is ", a, ", the reference writes nothing");
      if (std::isnan(a) && std::isnan(b)) continue;
      // Not <=: a difference that is no number is wrong.
      if (!(std::abs(a - b) <= allowed * scale)) {
        return absl::StrCat("[", i, "] is ", a, ", the reference is ", b, ", allowed is ",
                            allowed * scale);
      }
    }
  }
  return "";
}

}  // namespace hackc::server
