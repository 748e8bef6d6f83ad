// SPDX-License-Identifier: MIT
// The generic text form of a node, driven by its field list: `combine {name = @sum, monoid = sum}`.
// Absent expressions are left out; every other field is printed. Reading takes fields in any order
// and leaves what is missing at its default, but for names, which have none.
//
//   std::string out;
//   PrintFields(combine, out);                                  // {name = @sum, ...}
//   HACKC_RETURN_IF_ERROR(ParseFields(lexer, scope, combine));
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/expr_parser.h"
#include "compiler/ir/stmt_fields.h"
#include "compiler/support/cat.h"
#include "compiler/support/status_macros.h"

namespace hackc::ir {

// thread(extent, stride), register(extent) or matrix(extent).
void PrintValue(const Digit& digit, std::string& out);
absl::Status ParseValue(TextLexer& lexer, const ExprScope& scope, Digit& digit);

template <typename T>
void PrintFields(const T& node, std::string& out);
template <typename T>
absl::Status ParseFields(TextLexer& lexer, const ExprScope& scope, T& node);

template <typename T>
void PrintValue(const T& value, std::string& out) {
  if constexpr (std::is_same_v<T, std::string>) {
    out += "@" + value;
  } else if constexpr (std::is_same_v<T, Expr>) {
    out += Print(value);
  } else if constexpr (NamedEnum<T>) {
    out += Name(value);
  } else if constexpr (NodeWithFields<T>) {
    PrintFields(value, out);
  } else if constexpr (std::is_same_v<T, double>) {
    out += PrintFloat(value);
  } else {
    AppendTo(out, value);
  }
}

template <typename T>
void PrintValue(const std::vector<T>& items, std::string& out) {
  out += "[";
  for (size_t i = 0; i < items.size(); ++i) {
    if (i) out += ", ";
    PrintValue(items[i], out);
  }
  out += "]";
}

template <typename T>
void PrintFields(const T& node, std::string& out) {
  out += "{";
  std::string_view separator;
  ForEachField<T>([&](const auto& field) {
    const auto& value = node.*field.member;
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Expr>) {
      if (!value) return;
    }
    out += separator;
    out += field.name;
    out += " = ";
    // Names of memory and of loops are both strings; the field called `axis` holds the latter.
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
      out += (field.name == "axis" ? "%" : "@") + value;
    } else {
      PrintValue(value, out);
    }
    separator = ", ";
  });
  out += "}";
}

// One of the words of an enumeration.
template <NamedEnum Enum>
absl::StatusOr<Enum> ParseEnum(TextLexer& lexer) {
  if (const auto value = lexer.Word<Enum>()) return lexer.Take(), *value;
  std::string choices;
  for (std::string_view name : kNamesOf<Enum>) {
    choices += Cat(choices.empty() ? "one of " : ", ", name);
  }
  return lexer.Expected(choices);
}

template <typename T>
absl::Status ParseValue(TextLexer& lexer, const ExprScope& scope, T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    bool axis = lexer.Peek().kind == TokenKind::kPercentName;
    HACKC_ASSIGN_OR_RETURN(
        value, lexer.Name(axis ? TokenKind::kPercentName : TokenKind::kAtName, "a @name or %axis"));
  } else if constexpr (std::is_same_v<T, Expr>) {
    HACKC_ASSIGN_OR_RETURN(value, ParseExpr(lexer, scope));
  } else if constexpr (std::is_same_v<T, DType>) {
    HACKC_ASSIGN_OR_RETURN(value, ParseDType(lexer));
  } else if constexpr (std::is_same_v<T, Monoid>) {
    const auto monoid = lexer.Word<Monoid>();
    if (!monoid) return lexer.Expected("a monoid such as sum");
    lexer.Take();
    value = *monoid;
  } else if constexpr (NamedEnum<T>) {
    HACKC_ASSIGN_OR_RETURN(value, ParseEnum<T>(lexer));
  } else if constexpr (NodeWithFields<T>) {
    return ParseFields(lexer, scope, value);
  } else if constexpr (std::is_same_v<T, bool>) {
    value = lexer.Accept("true");
    if (!value) return lexer.Expect("false");
  } else if constexpr (std::is_same_v<T, double>) {
    HACKC_ASSIGN_OR_RETURN(value, lexer.Number("a number"));
  } else if constexpr (std::is_same_v<T, int64_t>) {
    HACKC_ASSIGN_OR_RETURN(value, lexer.Integer("an integer"));
  } else {
    static_assert(std::is_same_v<T, int>);
    HACKC_ASSIGN_OR_RETURN(value, lexer.SmallInteger("an integer"));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status ParseValue(TextLexer& lexer, const ExprScope& scope, std::vector<T>& items) {
  HACKC_RETURN_IF_ERROR(lexer.Expect("["));
  items.clear();
  if (lexer.Accept("]")) return absl::OkStatus();
  do {
    HACKC_RETURN_IF_ERROR(ParseValue(lexer, scope, items.emplace_back()));
  } while (lexer.Accept(","));
  return lexer.Expect("]");
}

template <typename T>
absl::Status ParseFields(TextLexer& lexer, const ExprScope& scope, T& node) {
  std::vector<std::string_view> seen;
  HACKC_RETURN_IF_ERROR(lexer.Expect("{"));
  while (!lexer.Is("}")) {
    if (!seen.empty()) HACKC_RETURN_IF_ERROR(lexer.Expect(","));
    Token at = lexer.Peek();
    HACKC_RETURN_IF_ERROR(lexer.Name(TokenKind::kIdentifier, "a field's name").status());
    for (std::string_view other : seen) {
      if (other == at.text) return TextLexer::ErrorAt(at, "field `", at.text, "` is given twice");
    }
    seen.push_back(at.text);
    HACKC_RETURN_IF_ERROR(lexer.Expect("="));
    bool known = false;
    absl::Status status;
    ForEachField<T>([&](const auto& field) {
      if (field.name != at.text) return;
      known = true;
      status = ParseValue(lexer, scope, node.*field.member);
    });
    HACKC_RETURN_IF_ERROR(status);
    if (!known) return TextLexer::ErrorAt(at, "`", NodeName<T>(), "` has no field `", at.text, "`");
  }
  std::string_view missing;
  ForEachField<T>([&](const auto& field) {
    if constexpr (std::is_same_v<std::decay_t<decltype(node.*field.member)>, std::string>) {
      if ((node.*field.member).empty()) missing = field.name;
    }
  });
  if (!missing.empty()) return lexer.Error("`", NodeName<T>(), "` lacks the field `", missing, "`");
  return lexer.Expect("}");
}

}  // namespace hackc::ir
