// SPDX-License-Identifier: MIT
#include "compiler/ir/module_verify.h"

#include <charconv>
#include <cmath>

#include "compiler/ir/expr_parser.h"
#include "compiler/ir/linear.h"
#include "compiler/ir/text_lexer.h"

namespace hackc::ir {
namespace {

bool IsConstantShape(const std::vector<Expr>& shape) {
  return absl::c_all_of(shape, [](const Expr& e) { return AsInt(e).has_value(); });
}

}  // namespace

void ModuleVerifier::Symbols(const std::vector<SymbolDecl>& declared) {
  ranges = RangeMap(declared);
  for (const SymbolDecl& symbol : declared) {
    path = "symbol " + symbol.name;
    line = symbol.line;
    if (!CanBeSymbol(symbol.name)) Error("name", "expressions do not read it as a symbol");
    if (!symbols.insert(symbol.name).second) Error("symbol", "declared twice");
    if (symbol.min < 0 || symbol.min > symbol.max || symbol.max > INT32_MAX) {
      Error("symbol", "expected 0 <= min <= max <= ", INT32_MAX, ", got ", symbol.min, "..",
            symbol.max);
    }
  }
}

void ModuleVerifier::Define(const std::string& name, const ValueType& type) {
  if (!IsName(name)) Error("name", "`", name, "` is not a name");
  if (!report->names.insert(name).second) Error("unique", "%", name, " is defined twice");
  values[name] = type;
}

std::string ModuleVerifier::ShapeError(const ValueType& type) const {
  if (type.shape.size() > kMaxRank)
    return Cat("has ", type.shape.size(), " dims, more than ", kMaxRank);
  for (const Expr& extent : type.shape) {
    if (!extent || extent->dtype != DType::kI32 || extent->depth > kMaxExprDepth) {
      return Cat("extent ", Print(extent), " is not an i32 expression of at most ", kMaxExprDepth,
                 " levels");
    }
    const bool plain = AllNodes(extent, [&](const Expr& e) {
      const Symbol* symbol = As<Symbol>(e);
      return symbol ? HasSymbol(symbol->name) : IsA<IntLiteral, Binary, Unary>(e);
    });
    if (!plain) return Cat("extent ", Print(extent), " is not over declared symbols alone");
    if (Bounds(extent, ranges).min < 1)
      return Cat("extent ", Print(extent), " is not positive within the symbols' bounds");
  }
  return "";
}

void ModuleVerifier::Placeholders(const std::string& weight_name, int layer_step) {
  static constexpr std::string_view kOpen = "{layer";
  for (size_t at = weight_name.find('{'); at != std::string::npos;
       at = weight_name.find('{', at + 1)) {
    const size_t close = weight_name.find('}', at);
    bool good = close != std::string::npos && weight_name.compare(at, kOpen.size(), kOpen) == 0;
    if (good && close != at + kOpen.size()) {
      const char* digits = weight_name.data() + at + kOpen.size() + 1;
      int offset = 0;
      const auto [end, code] = std::from_chars(digits, weight_name.data() + close, offset);
      good = digits[-1] == '+' && code == std::errc() && end == weight_name.data() + close &&
             offset > 0 && offset < layer_step;
    }
    if (!good || layer_step == 0) {
      Error("weight", "\"", weight_name,
            "\" does not name a layer as {layer}, or {layer+K} with "
            "0 < K < step, inside a segment");
      return;
    }
  }
}

void ModuleVerifier::Source(const SourceDecl& source, int layer_step) {
  using Kind = SourceDecl::Kind;
  const bool shape_is_good = CheckShape(source.type);
  const bool constant_shape = IsConstantShape(source.type.shape);
  if (source.kind == Kind::kInput && layer_step != 0) {
    Error("input", "an input is declared inside a segment");
  }
  if (source.kind == Kind::kWeight || source.kind == Kind::kState) {
    if (source.weight_name.empty()) Error("weight", "has no name in the checkpoint");
    Placeholders(source.weight_name, layer_step);
  }
  if (source.kind == Kind::kWeight && !constant_shape) {
    Error("weight", "a weight's extents are constant");
  }
  if (source.kind == Kind::kConstant && shape_is_good) {
    double count = constant_shape ? 1 : -1;
    for (const Expr& extent : source.type.shape) count *= constant_shape ? *AsInt(extent) : 1;
    if (count != static_cast<double>(source.data.size())) {
      Error("constant", "has ", source.data.size(), " values, which does not fit its shape");
    }
    if (!absl::c_all_of(source.data, [](double x) { return std::isfinite(x); })) {
      Error("constant", "has a value that is not finite");
    }
  }
  Define(source.name, source.type);
  sources[source.name] = &source;
}

bool SameExtent(const Expr& a, const Expr& b) {
  if (Equal(a, b)) return true;
  // What has no dtype in common was reported where it is declared.
  return IsInteger(a->dtype) && a->dtype == b->dtype && SameSum(a, b);
}

bool SameShape(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return absl::c_equal(a, b, SameExtent);
}

bool SameType(const ValueType& a, const ValueType& b) {
  return a.dtype == b.dtype && SameShape(a.shape, b.shape);
}

}  // namespace hackc::ir
