// SPDX-License-Identifier: MIT
#include "compiler/interp/tensor_data.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "gtest/gtest.h"

namespace hackc::interp {
namespace {

using ir::DType;

double FromBFloat16Bits(uint32_t bits) {
  bits <<= 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Every finite bfloat16 is a fixed point; the midpoint of two neighbours goes to the even one, and
// anything off the midpoint to the nearer one.
TEST(RoundTo, BFloat16IsExactOnEveryNeighbourPair) {
  for (uint32_t bits = 0; bits < 0x7f7f; ++bits) {
    const double low = FromBFloat16Bits(bits), high = FromBFloat16Bits(bits + 1);
    ASSERT_EQ(RoundTo(DType::kBF16, low), low);
    const double middle = (low + high) / 2;
    ASSERT_EQ(RoundTo(DType::kBF16, middle), bits % 2 == 0 ? low : high) << bits;
    ASSERT_EQ(RoundTo(DType::kBF16, std::nextafter(middle, 0)), low) << bits;
    ASSERT_EQ(RoundTo(DType::kBF16, -std::nextafter(middle, 1e300)), -high) << bits;
  }
}

// A value just above a bfloat16 midpoint rounds to it in float32 first: rounding twice would go to
// even.
TEST(RoundTo, BFloat16IsNotRoundedTwice) {
  const double above_middle = 1.0 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40);
  EXPECT_EQ(RoundTo(DType::kBF16, above_middle), 1.0 + std::ldexp(1.0, -7));
}

TEST(RoundTo, Float16EdgesAreExact) {
  EXPECT_EQ(RoundTo(DType::kF16, 65504), 65504);
  EXPECT_EQ(RoundTo(DType::kF16, 65519.99), 65504);
  EXPECT_EQ(RoundTo(DType::kF16, 65520), std::numeric_limits<double>::infinity());
  EXPECT_EQ(RoundTo(DType::kF16, std::ldexp(1.0, -24)), std::ldexp(1.0, -24));
  EXPECT_EQ(RoundTo(DType::kF16, std::ldexp(1.0, -25)), 0);
  EXPECT_EQ(RoundTo(DType::kF16, std::ldexp(1.5, -25)), std::ldexp(1.0, -24));
  EXPECT_EQ(RoundTo(DType::kF16, 2049), 2048);
  EXPECT_EQ(RoundTo(DType::kF16, 2051), 2052);
  EXPECT_TRUE(std::signbit(RoundTo(DType::kF16, -0.0)));
  EXPECT_TRUE(std::isnan(RoundTo(DType::kF16, std::nan(""))));
}

TEST(RoundTo, OtherTypes) {
  EXPECT_EQ(RoundTo(DType::kF64, 0.1), 0.1);
  EXPECT_EQ(RoundTo(DType::kF32, 0.1), static_cast<double>(0.1f));
  EXPECT_EQ(RoundTo(DType::kI32, -2.5), -2);
  EXPECT_EQ(RoundTo(DType::kBool, -2.5), 1);
}

TEST(TensorData, OffsetsAreRowMajorAndChecked) {
  TensorData x = TensorData::Zeros(DType::kF32, {2, 3, 4});
  EXPECT_EQ(x.size(), 24);
  EXPECT_EQ(x.Offset({1, 2, 3}), 23);
  EXPECT_EQ(x.Offset({0, 1, 0}), 4);
  EXPECT_EQ(x.Offset({2, 0, 0}), -1);
  EXPECT_EQ(x.Offset({0, -1, 0}), -1);
  EXPECT_EQ(x.Offset({0, 0}), -1);
  x.At({1, 0, 0}) = 0.1;
  x.Round();
  EXPECT_EQ(x.values[12], static_cast<double>(0.1f));
  EXPECT_EQ(ShapeText(x.dtype, x.shape), "f32[2, 3, 4]");
}

}  // namespace
}  // namespace hackc::interp
