// SPDX-License-Identifier: MIT
#include "compiler/ir/graph_text.h"

#include <utility>

#include "compiler/ir/field_text.h"
#include "compiler/ir/graph_fields.h"
#include "compiler/ir/module_text.h"
#include "compiler/support/cat.h"

namespace hackc::ir {
namespace {

constexpr std::string_view kNone = "none";

template <typename T>
void PrintFieldsOf(const T& op, std::string& out) {
  out += Cat(NodeName<T>(), "(");
  std::string_view separator;
  ForEachOperand(op, [&](std::string_view, const std::string& name) {
    out += Cat(separator, name.empty() ? std::string(kNone) : "%" + name);
    separator = ", ";
  });
  out += ")";
  separator = " {";
  ForEachField<T>([&](const auto& field) {
    const auto& value = op.*field.member;
    using Value = std::decay_t<decltype(value)>;
    if constexpr (!kIsOperand<Value>) {
      out += Cat(separator, field.name, " = ");
      if constexpr (std::is_same_v<Value, double>) {
        out += PrintFloat(value);
      } else {
        PrintValue(value, out);
      }
      separator = ", ";
    }
  });
  if (separator == ", ") out += "}";
}

absl::StatusOr<std::string> ParseOperand(TextLexer& lexer) {
  if (lexer.Accept(kNone)) return std::string();
  return lexer.PercentName("a value such as %x, or none");
}

template <typename T>
absl::Status ParseOperands(TextLexer& lexer, T& op) {
  HACKC_RETURN_IF_ERROR(lexer.Expect("("));
  absl::Status status;
  bool first = true;
  ForEachField<T>([&](const auto& field) {
    auto& value = op.*field.member;
    using Value = std::decay_t<decltype(value)>;
    const auto next = [&](std::string& name) {
      if (!first) status = lexer.Expect(",");
      first = false;
      if (status.ok()) status = Into(name, ParseOperand(lexer));
    };
    if constexpr (std::is_same_v<Value, std::string>) {
      if (status.ok()) next(value);
    } else if constexpr (kIsOperand<Value>) {
      while (status.ok() && !lexer.Is(")")) next(value.emplace_back());
    }
  });
  HACKC_RETURN_IF_ERROR(status);
  return lexer.Expect(")");
}

// In the order of declaration, as printed.
template <typename T>
absl::Status ParseAttributes(TextLexer& lexer, T& op) {
  absl::Status status;
  std::string_view opening = "{";
  ForEachField<T>([&](const auto& field) {
    auto& value = op.*field.member;
    using Value = std::decay_t<decltype(value)>;
    if constexpr (!kIsOperand<Value>) {
      if (status.ok()) status = lexer.Expect(opening);
      opening = ",";
      if (status.ok()) status = lexer.Expect(field.name);
      if (status.ok()) status = lexer.Expect("=");
      if (status.ok()) status = ParseValue(lexer, {}, value);
    }
  });
  HACKC_RETURN_IF_ERROR(status);
  return opening == "," ? lexer.Expect("}") : absl::OkStatus();
}

// Tries each alternative of the variant by its word.
template <size_t kIndex = 0>
absl::StatusOr<GraphOpVariant> ParseKind(TextLexer& lexer, const Token& word) {
  if constexpr (kIndex == std::variant_size_v<GraphOpVariant>) {
    return TextLexer::ErrorAt(word, "`", word.text, "` is not a Graph operation");
  } else {
    using T = std::variant_alternative_t<kIndex, GraphOpVariant>;
    if (word.text != NodeName<T>()) return ParseKind<kIndex + 1>(lexer, word);
    T op;
    HACKC_RETURN_IF_ERROR(ParseOperands(lexer, op));
    HACKC_RETURN_IF_ERROR(ParseAttributes(lexer, op));
    return GraphOpVariant(std::move(op));
  }
}

absl::StatusOr<GraphOp> ParseOp(TextLexer& lexer, const ModuleScope& scope) {
  GraphOp op;
  HACKC_ASSIGN_OR_RETURN(const Token word, ParseHead(lexer, scope, op.out, op.type));
  HACKC_ASSIGN_OR_RETURN(op.op, ParseKind(lexer, word));
  return op;
}

void PrintOp(const GraphOp& op, std::string& out) {
  out += Cat("%", op.out, ": ", PrintType(op.type), " = ");
  std::visit([&](const auto& node) { PrintFieldsOf(node, out); }, op.op);
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

std::string_view OpName(const GraphOp& op) {
  return std::visit([]<typename T>(const T&) { return NodeName<T>(); }, op.op);
}

std::string Print(const GraphOp& op) {
  std::string out;
  PrintOp(op, out);
  return out;
}

std::string Print(const GraphModule& module) { return PrintModule("graph", module, PrintOp); }

absl::StatusOr<GraphModule> ParseGraph(std::string_view text) {
  return ParseModule<GraphOp>(text, "graph", ParseOp);
}

}  // namespace hackc::ir
