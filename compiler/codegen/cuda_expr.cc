// SPDX-License-Identifier: MIT
#include "compiler/codegen/cuda_expr.h"

#include <cmath>
#include <limits>

#include "compiler/ir/rewrite.h"
#include "compiler/ir/shared_layout.h"
#include "compiler/ir/text_lexer.h"
#include "compiler/support/cat.h"
#include "compiler/support/internal_error.h"

namespace hackc::codegen {
namespace {

using ir::As;
using ir::BinaryOp;
using ir::DType;
using ir::Expr;
using ir::UnaryOp;

// How tightly C++ binds; an expression that binds less than its place asks for gets parentheses.
constexpr int kTernary = 10;
constexpr int kUnary = 90;
constexpr int kPrimary = 100;

// Of the infix operators, in the order of BinaryOp; 0 for those that are calls.
constexpr int kPrecedence[] = {70, 70, 80, 80, 80, 80, 0,  0,  0, 50,
                               50, 45, 45, 30, 25, 40, 38, 60, 60};
constexpr int PrecedenceOf(BinaryOp op) { return kPrecedence[static_cast<size_t>(op)]; }
static_assert(PrecedenceOf(BinaryOp::kMod) == 80 && PrecedenceOf(BinaryOp::kLe) == 50 &&
              PrecedenceOf(BinaryOp::kOr) == 25 && PrecedenceOf(BinaryOp::kShr) == 60);

bool IsStorageOnly(DType dtype) { return dtype == DType::kBF16 || dtype == DType::kF16; }

// The prelude's function between float and a storage-only type.
const char* FromFloat(DType to) { return to == DType::kBF16 ? "float_to_bf16" : "float_to_f16"; }
const char* ToFloat(DType from) { return from == DType::kBF16 ? "bf16_to_float" : "f16_to_float"; }

}  // namespace

CudaExprs::CudaExprs(const std::vector<ir::SymbolDecl>& symbols) : ranges_(symbols) {}

void CudaExprs::DeclareGlobal(const ir::BufferDecl& buffer) {
  BufferInfo info{buffer.dtype};
  Expr elements = ir::IntLit(1, DType::kI64);
  for (const Expr& extent : buffer.shape) elements = elements * ir::MakeCast(DType::kI64, extent);
  ir::Range range = ir::Bounds(elements * ir::SizeOf(buffer.dtype), ranges_);
  if (range.max > std::numeric_limits<int32_t>::max()) info.index = DType::kI64;
  info.strides.assign(buffer.shape.size(), ir::IntLit(1, info.index));
  for (size_t i = buffer.shape.size(); i-- > 1;) {
    info.strides[i - 1] = info.strides[i] * ir::MakeCast(info.index, buffer.shape[i]);
  }
  names_.Get(Names::Kind::kBuffer, buffer.name);
  buffers_[buffer.name] = std::move(info);
}

void CudaExprs::DeclareAlloc(const ir::Alloc& alloc) {
  BufferInfo info{alloc.dtype};
  for (int64_t stride : ir::Strides(alloc)) info.strides.push_back(ir::IntLit(stride));
  names_.Get(Names::Kind::kBuffer, alloc.name);
  buffers_[alloc.name] = std::move(info);
}

std::string CudaExprs::Type(DType dtype) {
  if (IsStorageOnly(dtype)) return prelude_.Use(ir::Name(dtype));
  static constexpr const char* kNames[] = {"double", "float", "", "", "long long", "int", "bool"};
  return kNames[static_cast<size_t>(dtype)];
}

const CudaExprs::BufferInfo& CudaExprs::Info(const std::string& buffer) const {
  const BufferInfo* info = FindOrNull(buffers_, buffer);
  HACKC_CHECK(info != nullptr) << "@" << buffer << " is not declared";
  return *info;
}

DType CudaExprs::TypeOf(const std::string& buffer) const { return Info(buffer).dtype; }

std::string CudaExprs::Element(const std::string& buffer, const std::vector<Expr>& indices) {
  const BufferInfo& info = Info(buffer);
  HACKC_CHECK(indices.size() == info.strides.size())
      << "@" << buffer << ": " << indices.size() << " indices, rank " << info.strides.size();
  const std::string& name = names_.Get(Names::Kind::kBuffer, buffer);
  if (indices.empty()) return name;
  Expr offset = ir::IntLit(0, info.index);
  for (size_t i = 0; i < indices.size(); ++i) {
    offset = offset + ir::MakeCast(info.index, indices[i]) * info.strides[i];
  }
  return Cat(name, "[", Print(offset), "]");
}

std::string CudaExprs::Address(const std::string& buffer, const std::vector<Expr>& indices) {
  return "&" + Element(buffer, indices);
}

std::string CudaExprs::PrintAbove(const Expr& e, int precedence) {
  int own = kPrimary;
  std::string text = PrintNode(e, own);
  return own < precedence ? Cat("(", text, ")") : text;
}

std::string CudaExprs::PrintNode(const Expr& e, int& precedence) {
  precedence = kPrimary;
  if (const auto* n = As<ir::IntLiteral>(e)) {
    if (n->dtype == DType::kBool) return n->value ? "true" : "false";
    if (n->value < 0) precedence = kUnary;
    const bool wide = n->dtype == DType::kI64;
    HACKC_CHECK(wide || n->value == static_cast<int32_t>(n->value)) << n->value << " is no int";
    const std::string_view suffix = wide ? "LL" : "";
    // The literal of the least number would be one that no type holds, negated.
    if (n->value == (wide ? INT64_MIN : INT32_MIN)) return Cat("(", n->value + 1, suffix, " - 1)");
    return Cat(n->value, suffix);
  }
  if (const auto* n = As<ir::FloatLiteral>(e)) {
    if (std::signbit(n->value)) precedence = kUnary;
    return PrintFloat(n->value, n->dtype);
  }
  if (const auto* n = As<ir::Var>(e)) return names_.Get(Names::Kind::kVar, n->name);
  if (const auto* n = As<ir::Symbol>(e)) return names_.Get(Names::Kind::kSymbol, n->name);
  if (const auto* n = As<ir::Builtin>(e)) {
    static constexpr const char* kNames[] = {"thread", "block_x", "block_y", "block_z"};
    builtins_.insert(n->kind);
    return names_.Get(Names::Kind::kBuiltin, kNames[static_cast<size_t>(n->kind)]);
  }
  if (As<ir::Unary>(e) || As<ir::Binary>(e)) {
    HACKC_CHECK(!IsStorageOnly(ir::Children(e)[0]->dtype))
        << "arithmetic on " << ir::Name(ir::Children(e)[0]->dtype) << ": " << ir::Print(e);
  }
  if (const auto* n = As<ir::Unary>(e)) return PrintUnary(*n, e->dtype, precedence);
  if (const auto* n = As<ir::Binary>(e)) return PrintBinary(*n, precedence);
  if (const auto* n = As<ir::Cast>(e)) return PrintCast(*n, precedence);
  if (const auto* n = As<ir::Shuffle>(e)) return PrintShuffle(*n, e->dtype);
  if (const auto* n = As<ir::Select>(e)) {
    precedence = kTernary;
    return Cat(PrintAbove(n->condition, kTernary + 1), " ? ", PrintAbove(n->a, kTernary + 1), " : ",
               PrintAbove(n->b, kTernary + 1));
  }
  if (const auto* n = As<ir::Load>(e)) {
    HACKC_CHECK(Info(n->buffer).dtype == n->dtype) << ir::Print(e);
    std::string element = Element(n->buffer, n->indices);
    if (!n->guard) return element;
    precedence = kTernary;
    return Cat(PrintAbove(n->guard, kTernary + 1), " ? ", element, " : (", Type(n->dtype), ")0");
  }
  HACKC_FAIL() << "no text for " << ir::Print(e);
  return {};
}

std::string CudaExprs::PrintFloat(double value, DType dtype) {
  if (IsStorageOnly(dtype)) {
    if (value == 0 && !std::signbit(value)) return Type(dtype) + "(0)";
    return Cat(prelude_.Use(FromFloat(dtype)), "(", PrintFloat(value, DType::kF32), ")");
  }
  const char* suffix = dtype == DType::kF64 ? "_F64" : "_F32";
  if (std::isnan(value)) return prelude_.Use(Cat("NAN", suffix));
  float rounded = static_cast<float>(value);
  if (std::isinf(dtype == DType::kF64 ? value : rounded)) {
    return Cat(value < 0 ? "-" : "", prelude_.Use(Cat("INFINITY", suffix)));
  }
  return dtype == DType::kF64 ? ir::PrintFloat(value) : ir::PrintFloat(rounded) + "f";
}

std::string CudaExprs::PrintUnary(const ir::Unary& n, DType dtype, int& precedence) {
  if (n.op == UnaryOp::kNeg || n.op == UnaryOp::kNot) {
    precedence = kUnary;
    return Cat(n.op == UnaryOp::kNeg ? "-" : "!", PrintAbove(n.a, kUnary + 1));
  }
  std::string argument = Cat("(", Print(n.a), ")");
  if (n.op == UnaryOp::kAbs)
    return (ir::IsFloat(dtype) ? dtype == DType::kF32 ? "fabsf" : "fabs" : "abs") + argument;
  HACKC_CHECK(ir::IsFloat(dtype)) << "a function of " << ir::Name(dtype) << ": " << ir::Print(n.a);
  // CUDA's functions have the names of the IR's.
  return Cat(ir::Name(n.op), dtype == DType::kF32 ? "f" : "", argument);
}

std::string CudaExprs::PrintBinary(const ir::Binary& n, int& precedence) {
  DType dtype = n.a->dtype;
  auto call = [&](std::string_view function) {
    return Cat(function, "(", Print(n.a), ", ", Print(n.b), ")");
  };
  const bool single = dtype == DType::kF32;
  if (n.op == BinaryOp::kMin) return call(!ir::IsFloat(dtype) ? "min" : single ? "fminf" : "fmin");
  if (n.op == BinaryOp::kMax) return call(!ir::IsFloat(dtype) ? "max" : single ? "fmaxf" : "fmax");
  if (n.op == BinaryOp::kPow) return call(single ? "powf" : "pow");
  if (n.op == BinaryOp::kFloorDiv || n.op == BinaryOp::kMod) {
    bool plain = ir::ProveNonNegative(n.a, ranges_) && ir::Bounds(n.b, ranges_).min > 0;
    if (!plain) return call(prelude_.Use(n.op == BinaryOp::kMod ? "floor_mod" : "floor_div"));
  }
  precedence = PrecedenceOf(n.op);
  HACKC_CHECK(precedence > 0) << "operator " << ir::Name(n.op) << " is a call";
  const std::string infix(n.op == BinaryOp::kFloorDiv ? "/" : ir::Name(n.op));
  // Sums of integers may be taken in any order, and read better flat.
  bool flat = n.op == BinaryOp::kAdd && !ir::IsFloat(dtype);
  return Cat(PrintAbove(n.a, precedence), " ", infix, " ",
             PrintAbove(n.b, precedence + (flat ? 0 : 1)));
}

std::string CudaExprs::PrintCast(const ir::Cast& n, int& precedence) {
  DType from = n.a->dtype;
  if (IsStorageOnly(from) && n.dtype != from) {
    std::string wide = Cat(prelude_.Use(ToFloat(from)), "(", Print(n.a), ")");
    if (n.dtype == DType::kF32) return wide;
    if (IsStorageOnly(n.dtype)) return Cat(prelude_.Use(FromFloat(n.dtype)), "(", wide, ")");
    precedence = kUnary;
    return Cat("(", Type(n.dtype), ")", wide);
  }
  if (IsStorageOnly(n.dtype)) {
    std::string argument = from == DType::kF32 ? Print(n.a) : "(float)" + PrintAbove(n.a, kUnary);
    return Cat(prelude_.Use(FromFloat(n.dtype)), "(", argument, ")");
  }
  if (n.dtype == DType::kBool) {
    precedence = PrecedenceOf(BinaryOp::kNe);
    return Cat(PrintAbove(n.a, precedence + 1), " != 0");
  }
  precedence = kUnary;
  return Cat("(", Type(n.dtype), ")", PrintAbove(n.a, kUnary));
}

std::string CudaExprs::PrintShuffle(const ir::Shuffle& n, DType dtype) {
  static constexpr const char* kNames[] = {"__shfl_xor_sync", "__shfl_sync", "__shfl_down_sync"};
  std::string call = Cat(kNames[static_cast<size_t>(n.kind)], "(0xffffffffu, ");
  std::string lane = Cat(", ", Print(n.lane), ")");
  if (IsStorageOnly(dtype) || dtype == DType::kBool) {
    return Cat(Type(dtype), "(", call, "(int)", PrintAbove(n.value, kUnary), lane, ")");
  }
  return Cat(call, Print(n.value), lane);
}

}  // namespace hackc::codegen
