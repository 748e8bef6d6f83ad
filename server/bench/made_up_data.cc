// SPDX-License-Identifier: MIT
#include "server/bench/made_up_data.h"

#include <algorithm>
#include <cstring>

#include "client/runtime/float_convert.h"
#include "client/runtime/program_check.h"

namespace hackc::server {
namespace {

constexpr uint64_t kStep = 1'000'003;  // a prime: it visits every residue

template <typename T>
void Put(T value, int64_t i, std::string& bytes) {
  std::memcpy(&bytes[i * sizeof(T)], &value, sizeof(T));
}

}  // namespace

std::string MadeUpData(v1::DType dtype, int64_t elements, int64_t below, uint64_t seed) {
  std::string bytes(elements * client::ElementBytes(dtype), '\0');
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (int64_t i = 0; i < elements; ++i) {
    state ^= state >> 12;  // xorshift64*
    state ^= state << 25;
    state ^= state >> 27;
    const uint64_t random = state * 0x2545f4914f6cdd1du;
    const float real = static_cast<float>(random >> 40) * 0x1p-23f - 1;
    const auto whole = static_cast<int64_t>((seed + i * kStep) % std::max<int64_t>(below, 1));
    switch (dtype) {
      case v1::DTYPE_FLOAT32: Put(real, i, bytes); break;
      case v1::DTYPE_FLOAT64: Put(double{real}, i, bytes); break;
      case v1::DTYPE_BFLOAT16: Put(client::FloatToBFloat16(real), i, bytes); break;
      case v1::DTYPE_FLOAT16: Put(client::FloatToFloat16(real), i, bytes); break;
      case v1::DTYPE_INT32: Put(static_cast<int32_t>(whole), i, bytes); break;
      case v1::DTYPE_INT64: Put(whole, i, bytes); break;
      default: Put(static_cast<uint8_t>(random >> 63), i, bytes);
    }
  }
  return bytes;
}

}  // namespace hackc::server
