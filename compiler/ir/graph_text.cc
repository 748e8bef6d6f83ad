// SPDX-License-Identifier: MIT
#include "compiler/ir/graph_text.h"

#include "compiler/ir/module_text.h"

namespace hackc::ir {
namespace {

// The operation's word, operands and attributes, in the order of declaration.
template <typename T>
void FieldsForm(Text& text, T& op) {
  text(NodeName<T>(), "(");
  std::string_view separator;
  const auto operand = [&](std::string& name) {
    text(separator);
    separator = ", ";
    if (!text.Has("none", name.empty())) text(Percent(name, "a value such as %x, or none"));
  };
  ForEachField<T>([&](const auto& field) {
    auto& value = op.*field.member;
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::string>) {
      operand(value);
    } else if constexpr (kIsOperand<Value>) {
      text.Until(")", value, operand);
    }
  });
  text(")");
  separator = " {";
  ForEachField<T>([&](const auto& field) {
    auto& value = op.*field.member;
    if constexpr (!kIsOperand<std::decay_t<decltype(value)>>) {
      text(separator, field.name, " = ", value);
      separator = ", ";
    }
  });
  if (separator == ", ") text("}");
}

void DefinitionForm(Text& text, const ModuleScope&, GraphOp& op) {
  ChooseKind(text, "Graph", op.op);
  std::visit([&](auto& node) { FieldsForm(text, node); }, op.op);
}

}  // namespace

std::vector<std::string> Operands(const GraphOp& op) {
  std::vector<std::string> names;
  std::visit(
      [&](const auto& node) {
        ForEachOperand(node, [&](std::string_view, const std::string& name) {
          if (!name.empty()) names.push_back(name);
        });
      },
      op.op);
  return names;
}

std::string Print(const GraphModule& module) {
  return PrintModule("graph", module, DefinitionForm);
}

absl::StatusOr<GraphModule> ParseGraph(std::string_view text) {
  return ParseModule<GraphOp>(text, "graph", DefinitionForm);
}

}  // namespace hackc::ir
