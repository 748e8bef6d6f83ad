// SPDX-License-Identifier: MIT
#include "compiler/ir/module_text.h"

#include <array>
#include <utility>

#include "compiler/support/cat.h"

namespace hackc::ir {
namespace {

constexpr std::array<std::string_view, 4> kSourceWords = {"input", "weight", "constant", "state"};

bool HasWeightName(SourceDecl::Kind kind) {
  return kind == SourceDecl::Kind::kWeight || kind == SourceDecl::Kind::kState;
}

}  // namespace

ExprScope ModuleScope::Expressions() const {
  ExprScope scope;
  scope.symbol = [this](std::string_view name) { return symbols.find(name) != symbols.end(); };
  scope.buffer = [this](std::string_view name) -> std::optional<DType> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second.dtype);
  };
  return scope;
}

std::string PrintType(const ValueType& type) {
  std::string out = Cat(Name(type.dtype), "[");
  for (size_t i = 0; i < type.shape.size(); ++i) out += Cat(i ? ", " : "", Print(type.shape[i]));
  return out + "]";
}

void PrintNames(const std::vector<std::string>& names, std::string& out) {
  out += "(";
  for (size_t i = 0; i < names.size(); ++i) out += Cat(i ? ", %" : "%", names[i]);
  out += ")";
}

void PrintSource(const SourceDecl& source, int indent, std::string& out) {
  out.append(indent, ' ');
  out += Cat(kSourceWords[static_cast<size_t>(source.kind)], " %", source.name, ": ",
             PrintType(source.type));
  if (HasWeightName(source.kind)) out += Cat(" ", PrintString(source.weight_name));
  if (source.kind == SourceDecl::Kind::kConstant) {
    out += " [";
    for (size_t i = 0; i < source.data.size(); ++i) {
      out += Cat(i ? ", " : "", PrintFloat(source.data[i]));
    }
    out += "]";
  }
  out += "\n";
}

void PrintPreamble(std::string_view level, const std::string& name,
                   const std::vector<SymbolDecl>& symbols, const std::vector<SourceDecl>& sources,
                   std::string& out) {
  out += Cat("hackc ", level, " 1\nmodule ", PrintString(name), "\n");
  for (const SymbolDecl& symbol : symbols) out += Print(symbol) + "\n";
  for (const SourceDecl& source : sources) PrintSource(source, 0, out);
}

absl::StatusOr<ValueType> ParseType(TextLexer& lexer, const ModuleScope& scope) {
  ValueType type;
  HACKC_ASSIGN_OR_RETURN(type.dtype, ParseDType(lexer));
  ExprScope expressions = scope.Expressions();
  expressions.buffer = nullptr;
  HACKC_RETURN_IF_ERROR(lexer.List(
      "[", "]", [&] { return Into(type.shape.emplace_back(), ParseExpr(lexer, expressions)); }));
  return type;
}

absl::StatusOr<std::vector<std::string>> ParseNames(TextLexer& lexer) {
  std::vector<std::string> names;
  HACKC_RETURN_IF_ERROR(lexer.List("(", ")", [&] {
    return Into(names.emplace_back(), lexer.PercentName("a value such as %x"));
  }));
  return names;
}

absl::StatusOr<Token> ParseHead(TextLexer& lexer, const ModuleScope& scope, std::string& out,
                                ValueType& type) {
  HACKC_ASSIGN_OR_RETURN(out, lexer.PercentName("the operation's result"));
  HACKC_RETURN_IF_ERROR(lexer.Expect(":"));
  HACKC_ASSIGN_OR_RETURN(type, ParseType(lexer, scope));
  HACKC_RETURN_IF_ERROR(lexer.Expect("="));
  Token word = lexer.Peek();
  HACKC_RETURN_IF_ERROR(lexer.Identifier("an operation's name").status());
  return word;
}

absl::StatusOr<std::vector<Carry>> ParseCarries(TextLexer& lexer) {
  std::vector<Carry> carries;
  HACKC_RETURN_IF_ERROR(lexer.List("(", ")", [&]() -> absl::Status {
    Carry& carry = carries.emplace_back();
    HACKC_ASSIGN_OR_RETURN(carry.name, lexer.PercentName("the carried value's name inside"));
    HACKC_RETURN_IF_ERROR(lexer.Expect("="));
    return Into(carry.initial, lexer.PercentName("the carried value's start"));
  }));
  return carries;
}

absl::Status ParseSources(TextLexer& lexer, ModuleScope& scope, std::vector<SourceDecl>& sources) {
  while (true) {
    const SourceLine line{lexer.Peek().line};
    size_t kind = 0;
    while (kind < kSourceWords.size() && !lexer.Accept(kSourceWords[kind])) ++kind;
    if (kind == kSourceWords.size()) return absl::OkStatus();
    SourceDecl source{.line = line};
    source.kind = static_cast<SourceDecl::Kind>(kind);
    HACKC_ASSIGN_OR_RETURN(source.name, lexer.PercentName("the source's name"));
    HACKC_RETURN_IF_ERROR(lexer.Expect(":"));
    HACKC_ASSIGN_OR_RETURN(source.type, ParseType(lexer, scope));
    if (HasWeightName(source.kind)) {
      HACKC_ASSIGN_OR_RETURN(source.weight_name, lexer.String("the checkpoint's name in quotes"));
    }
    if (source.kind == SourceDecl::Kind::kConstant) {
      HACKC_RETURN_IF_ERROR(lexer.List(
          "[", "]", [&] { return Into(source.data.emplace_back(), lexer.Number("a number")); }));
    }
    scope.values.insert_or_assign(source.name, source.type);
    sources.push_back(std::move(source));
  }
}

absl::Status ParsePreamble(TextLexer& lexer, std::string_view level, ModuleScope& scope,
                           std::string& name, std::vector<SymbolDecl>& symbols,
                           std::vector<SourceDecl>& sources) {
  HACKC_RETURN_IF_ERROR(lexer.ExpectHeader(level, 1));
  HACKC_RETURN_IF_ERROR(lexer.Expect("module"));
  HACKC_ASSIGN_OR_RETURN(name, lexer.String("the module's name in quotes"));
  while (lexer.Accept("symbol")) {
    HACKC_ASSIGN_OR_RETURN(SymbolDecl symbol, ParseSymbol(lexer));
    scope.symbols.insert(symbol.name);
    symbols.push_back(std::move(symbol));
  }
  return ParseSources(lexer, scope, sources);
}

}  // namespace hackc::ir
