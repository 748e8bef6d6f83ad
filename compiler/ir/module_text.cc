// SPDX-License-Identifier: MIT
#include "compiler/ir/module_text.h"

namespace hackc::ir {

ExprScope ModuleScope::Expressions() const {
  ExprScope scope;
  scope.symbol = [this](std::string_view name) { return symbols.contains(name); };
  scope.buffer = [this](std::string_view name) -> std::optional<DType> {
    const ValueType* found = FindOrNull(values, name);
    return found ? std::optional(found->dtype) : std::nullopt;
  };
  return scope;
}

std::string PrintType(const ValueType& type) {
  std::string out;
  ValueType printed = type;
  Text printer(out);
  Form(printer, ModuleScope(), printed);
  return out;
}

void Form(Text& text, const ModuleScope& scope, ValueType& type) {
  text.scope = scope.Expressions();
  text.scope.buffer = nullptr;
  text(type.dtype);
  text.List("[", "]", type.shape, [&](Expr& extent) { text(extent); });
}

void Form(Text& text, std::vector<std::string>& names) {
  text.List("(", ")", names, [&](std::string& name) { text(Percent(name, "a value such as %x")); });
}

void Form(Text& text, ModuleScope& scope, std::string_view indent,
          std::vector<SourceDecl>& sources) {
  using Kind = SourceDecl::Kind;
  text.EachOf<Kind>(sources, [&](SourceDecl& source) {
    source.line = text.Line();
    text(indent, source.kind, " ", Percent(source.name, "the source's name"), ": ");
    Form(text, scope, source.type);
    if (source.kind == Kind::kWeight || source.kind == Kind::kState)
      text(" ", Quoted(source.weight_name, "the checkpoint's name in quotes"));
    if (source.kind == Kind::kConstant) {
      text(" ");
      text.List("[", "]", source.data, [&](double& value) { text(value); });
    }
    text("\n");
    scope.values.insert_or_assign(source.name, source.type);
  });
}

}  // namespace hackc::ir
