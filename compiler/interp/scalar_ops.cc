// SPDX-License-Identifier: MIT
#include "compiler/interp/scalar_ops.h"

#include <algorithm>
#include <cmath>

#include "compiler/support/internal_error.h"

namespace hackc::interp {

using ir::BinaryOp;
using ir::UnaryOp;

double ApplyFloat(UnaryOp op, double a) {
  switch (op) {
    case UnaryOp::kNeg:
      return -a;
    case UnaryOp::kExp:
      return std::exp(a);
    case UnaryOp::kExp2:
      return std::exp2(a);
    case UnaryOp::kLog:
      return std::log(a);
    case UnaryOp::kSqrt:
      return std::sqrt(a);
    case UnaryOp::kRsqrt:
      return 1 / std::sqrt(a);
    case UnaryOp::kTanh:
      return std::tanh(a);
    case UnaryOp::kErf:
      return std::erf(a);
    case UnaryOp::kSin:
      return std::sin(a);
    case UnaryOp::kCos:
      return std::cos(a);
    case UnaryOp::kAbs:
      return std::abs(a);
    case UnaryOp::kNot:
      break;
  }
  HACKC_FAIL() << Name(op) << " of a float";
  return 0;
}

double ApplyFloat(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kDiv:
      return a / b;
    case BinaryOp::kMin:
      return std::fmin(a, b);
    case BinaryOp::kMax:
      return std::fmax(a, b);
    case BinaryOp::kPow:
      return std::pow(a, b);
    default:
      break;
  }
  HACKC_FAIL() << Name(op) << " of floats";
  return 0;
}

bool CompareFloat(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kLt:
      return a < b;
    case BinaryOp::kLe:
      return a <= b;
    case BinaryOp::kEq:
      return a == b;
    case BinaryOp::kNe:
      return a != b;
    default:
      break;
  }
  HACKC_FAIL() << Name(op) << " of floats";
  return false;
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
    case BinaryOp::kAdd:
      return static_cast<int64_t>(x + y);
    case BinaryOp::kSub:
      return static_cast<int64_t>(x - y);
    case BinaryOp::kMul:
      return static_cast<int64_t>(x * y);
    case BinaryOp::kFloorDiv:
      if (b == 0) return std::nullopt;
      if (b == -1) return static_cast<int64_t>(-x);
      return a / b - (a % b != 0 && (a < 0) != (b < 0));
    case BinaryOp::kMod:
      if (b == 0) return std::nullopt;
      if (b == -1) return 0;
      return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
    case BinaryOp::kMin:
      return std::min(a, b);
    case BinaryOp::kMax:
      return std::max(a, b);
    case BinaryOp::kLt:
      return a < b;
    case BinaryOp::kLe:
      return a <= b;
    case BinaryOp::kEq:
      return a == b;
    case BinaryOp::kNe:
      return a != b;
    case BinaryOp::kAnd:
      return a && b;
    case BinaryOp::kOr:
      return a || b;
    case BinaryOp::kBitAnd:
      return a & b;
    case BinaryOp::kBitXor:
      return a ^ b;
    case BinaryOp::kShl:
    case BinaryOp::kShr:
      if (b < 0 || b > 63) return std::nullopt;
      return op == BinaryOp::kShl ? static_cast<int64_t>(x << b) : a >> b;
    case BinaryOp::kDiv:
    case BinaryOp::kPow:
      break;
  }
  HACKC_FAIL() << Name(op) << " of integers";
  return std::nullopt;
}

bool IsComparison(BinaryOp op) {
  return op == BinaryOp::kLt || op == BinaryOp::kLe || op == BinaryOp::kEq || op == BinaryOp::kNe;
}

}  // namespace hackc::interp
