// SPDX-License-Identifier: MIT
#include "compiler/interp/scalar_ops.h"

#include <algorithm>
#include <cmath>

#include "compiler/support/internal_error.h"

namespace hackc::interp {

using ir::BinaryOp;
using ir::UnaryOp;

double ApplyFloat(UnaryOp op, double a) {
  HACKC_CHECK(op != UnaryOp::kNot) << Name(op) << " of a float";
  static constexpr double (*kFunctions[])(double) = {
      // in the order of UnaryOp
      [](double x) { return -x; },           [](double x) { return std::exp(x); },
      [](double x) { return std::exp2(x); }, [](double x) { return std::log(x); },
      [](double x) { return std::sqrt(x); }, [](double x) { return 1 / std::sqrt(x); },
      [](double x) { return std::tanh(x); }, [](double x) { return std::erf(x); },
      [](double x) { return std::sin(x); },  [](double x) { return std::cos(x); },
      [](double x) { return std::abs(x); },
  };
  return kFunctions[static_cast<size_t>(op)](a);
}

double ApplyFloat(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kAdd: return a + b;
    case BinaryOp::kSub: return a - b;
    case BinaryOp::kMul: return a * b;
    case BinaryOp::kDiv: return a / b;
    case BinaryOp::kMin: return std::fmin(a, b);
    case BinaryOp::kMax: return std::fmax(a, b);
    case BinaryOp::kPow: return std::pow(a, b);
    case BinaryOp::kLt: return a < b;
    case BinaryOp::kLe: return a <= b;
    case BinaryOp::kEq: return a == b;
    case BinaryOp::kNe: return a != b;
    default: break;
  }
  HACKC_FAIL() << Name(op) << " of floats";
  return 0;
}

int64_t ToInteger(ir::DType to, ir::DType from, double value) {
  if (to == ir::DType::kBool) return value != 0;
  const bool wide = to == ir::DType::kI64;
  const int64_t least = wide ? INT64_MIN : INT32_MIN, most = wide ? INT64_MAX : INT32_MAX;
  if (std::isnan(value)) return wide || from == ir::DType::kF64 ? least : 0;
  // The least is a power of two: exact, and so is the first number that is too large.
  if (value <= static_cast<double>(least)) return least;
  return value >= -static_cast<double>(least) ? most : static_cast<int64_t>(value);
}

int64_t ApplyInteger(UnaryOp op, int64_t a) {
  const int64_t negated = static_cast<int64_t>(-static_cast<uint64_t>(a));
  if (op == UnaryOp::kNeg) return negated;
  if (op == UnaryOp::kAbs) return a < 0 ? negated : a;
  HACKC_CHECK(op == UnaryOp::kNot) << Name(op) << " of an integer";
  return a == 0;
}

std::optional<int64_t> ApplyInteger(BinaryOp op, int64_t a, int64_t b) {
  const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (op) {
    case BinaryOp::kAdd: return static_cast<int64_t>(x + y);
    case BinaryOp::kSub: return static_cast<int64_t>(x - y);
    case BinaryOp::kMul: return static_cast<int64_t>(x * y);
    case BinaryOp::kFloorDiv:
      if (b == 0) return std::nullopt;
      if (b == -1) return static_cast<int64_t>(-x);
      return a / b - (a % b != 0 && (a < 0) != (b < 0));
    case BinaryOp::kMod:
      if (b == 0) return std::nullopt;
      if (b == -1) return 0;
      return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
    case BinaryOp::kMin: return std::min(a, b);
    case BinaryOp::kMax: return std::max(a, b);
    case BinaryOp::kLt: return a < b;
    case BinaryOp::kLe: return a <= b;
    case BinaryOp::kEq: return a == b;
    case BinaryOp::kNe: return a != b;
    case BinaryOp::kAnd: return a && b;
    case BinaryOp::kOr: return a || b;
    case BinaryOp::kBitAnd: return a & b;
    case BinaryOp::kBitXor: return a ^ b;
    case BinaryOp::kShl:
    case BinaryOp::kShr:
      if (b < 0 || b > 63) return std::nullopt;
      return op == BinaryOp::kShl ? static_cast<int64_t>(x << b) : a >> b;
    case BinaryOp::kDiv:
    case BinaryOp::kPow: break;
  }
  HACKC_FAIL() << Name(op) << " of integers";
  return std::nullopt;
}

}  // namespace hackc::interp
