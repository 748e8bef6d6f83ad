// SPDX-License-Identifier: MIT
// A form is the text of something, written once for both ways: the same function prints it or reads
// it, so that printer and parser cannot disagree.
//
//   void Form(Text& text, Let& n) {
//     text("let ", Percent(n.name, "a %name"), " = ", n.value, "\n");
//   }
//
//   Text printer(out);                 Form(printer, let);     // "let %x = (%i + 1)"
//   Text reader(lexer);                Form(reader, let);     // expressions may use reader.scope
//   HACKC_RETURN_IF_ERROR(reader.status());
//
// A node that has no form of its own is read and printed by its field list: `combine {name = @sum,
// monoid = sum}`. Absent expressions are left out, every other field is printed. Reading takes
// fields in any order and leaves what is missing at its default, but for names, which have none.
//
// Strings are what stands there; reading takes their tokens in turn, whatever the space between
// them. After the first error a reader does nothing more, and all that asks what comes next gets
// `false`.
//
// Thread safety: an object belongs to one thread.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "compiler/ir/expr_parser.h"
#include "compiler/ir/stmt.h"

namespace hackc::ir {

// A name with its sigil, or a string in quotes; `what` names it for messages.
struct NameForm {
  std::string& name;
  std::string_view what;
  TokenKind kind;
};
template <TokenKind kKind>
NameForm NameOf(std::string& name, std::string_view what) {
  return {name, what, kKind};
}
inline constexpr auto Percent = NameOf<TokenKind::kPercentName>;
inline constexpr auto AtSign = NameOf<TokenKind::kAtName>;
inline constexpr auto Plain = NameOf<TokenKind::kIdentifier>;
inline constexpr auto Quoted = NameOf<TokenKind::kString>;
// An int or an int64_t whose messages say more than "an integer".
template <typename Int>
struct Number {
  Number(Int& value, std::string_view what) : value(value), what(what) {}
  Int& value;
  std::string_view what;
};

class Text {
 public:
  explicit Text(std::string& out) : out_(&out) {}
  explicit Text(TextLexer& lexer) : lexer_(&lexer) {}

  ExprScope scope;  // reading: what expressions may use here

  // Prints or reads the parts one after another: words, names, numbers, values.
  void operator()(auto&&... parts) { (Part(parts), ...); }

  // "hackc LEVEL 1"
  void Header(std::string_view level);
  void End();  // nothing stands behind this

  // What may be absent. Printing: whether it is `present`; reading: whether the first token of
  // `words` comes.
  bool Next(std::string_view words, bool present) const;
  // The same, and prints or takes `words`.
  bool Has(std::string_view words, bool present);

  // Items as long as each opens with `word`, or with a word of an enumeration; or up to `word`.
  void Each(std::string_view word, auto& items, auto&& form) {
    Items(items, form, [&] { return lexer_->Is(word); });
  }
  template <NamedEnum Enum>
  void EachOf(auto& items, auto&& form) {
    Items(items, form, [&] { return lexer_->Word<Enum>().has_value(); });
  }
  void Until(std::string_view word, auto& items, auto&& form) {
    Items(items, form, [&] { return !lexer_->Is(word); });
  }
  // "[a, b]"
  template <typename T>
  void List(std::string_view open, std::string_view close, std::vector<T>& items, auto&& form) {
    (*this)(open);
    for (size_t i = 0; out_ ? i < items.size() : !Next(close, false); ++i) {
      if (i > 0) (*this)(", ");
      if (!ok()) return;
      if (lexer_) items.emplace_back();
      form(items[i]);
    }
    (*this)(close);
  }
  // "a, b", one at least.
  void Listed(auto& items, auto&& form) {
    for (size_t i = 0; out_ ? i < items.size() : i == 0 || Has(",", false); ++i) {
      if (out_ && i > 0) Words(", ");
      if (lexer_) items.emplace_back();
      form(items[i]);
    }
  }
  // Makes `node` one of the kind that the word that comes names; false when there is none.
  template <typename... Kinds>
  bool Choose(std::variant<Kinds...>& node) const {
    return ((lexer_->Is(NodeName<Kinds>()) && (node = Kinds(), true)) || ...);
  }

  bool reads() const { return lexer_ != nullptr; }
  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }
  TextLexer& lexer() { return *lexer_; }
  // Reading: the token that comes.
  Token Here() const { return lexer_ ? lexer_->Peek() : Token(); }
  SourceLine Line() const { return {lexer_ ? lexer_->Peek().line : 0}; }
  // Reading: keeps an error, if it is the first.
  void Note(absl::Status status) {
    if (ok()) status_ = std::move(status);
  }
  void Fail(const Token& at, const auto&... message) { Note(TextLexer::ErrorAt(at, message...)); }

 private:
  void Words(std::string_view words);
  void Name(const NameForm& form);
  template <typename T>
  void Part(T& part) {
    if constexpr (std::is_convertible_v<T&, std::string_view>) {
      Words(part);
    } else if constexpr (std::is_same_v<T, NameForm>) {
      Name(part);
    } else if constexpr (std::is_same_v<T, Number<int>> || std::is_same_v<T, Number<int64_t>>) {
      Value(part.value, part.what);
    } else {
      Value(part);
    }
  }

  void Value(Digit& digit);
  template <typename T>
  void Value(std::vector<T>& items) {
    Words("[");
    if (!Next("]", items.empty())) Listed(items, [&](T& item) { Value(item); });
    Words("]");
  }
  template <typename T>
  void Value(T& value, std::string_view what = "an integer") {
    if constexpr (NodeWithFields<T>) {
      out_ ? PrintFields(value) : ReadFields(value);
    } else if constexpr (std::is_same_v<T, Expr>) {
      out_ ? Words(Print(value)) : Read(value, [&] { return ParseExpr(*lexer_, scope); });
    } else if constexpr (NamedEnum<T>) {
      out_ ? Words(ir::Name(value)) : Read(value, [&] { return lexer_->TakeWord<T>(); });
    } else if constexpr (std::is_same_v<T, double>) {
      out_ ? Words(PrintFloat(value)) : Read(value, [&] { return lexer_->Number("a number"); });
    } else if (out_) {
      AppendTo(*out_, value);
    } else if constexpr (std::is_same_v<T, bool>) {
      value = Has("true", false);
      if (!value) Words("false");
    } else if constexpr (std::is_same_v<T, int>) {
      Read(value, [&] { return lexer_->SmallInteger(what); });
    } else {
      Read(value, [&] { return lexer_->Integer(what); });
    }
  }
  void Read(auto& to, auto&& read) {
    if (ok()) Note(Into(to, read()));
  }
  // A name of a variable where `field` says so; reading: of what its sigil says.
  void Field(std::string_view field, std::string& name) {
    const bool variable = out_ ? field == "axis" : Here().kind == TokenKind::kPercentName;
    Name({name, "a @name or %axis", variable ? TokenKind::kPercentName : TokenKind::kAtName});
  }
  void Field(std::string_view, auto& value) { Value(value); }
  template <typename T>
  void PrintFields(T& node) {
    std::string_view separator = "{";
    ForEachField<T>([&](const auto& field) {
      auto& value = node.*field.member;
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Expr>) {
        if (!value) return;
      }
      (*this)(separator, field.name, " = ");
      Field(field.name, value);
      separator = ", ";
    });
    Words(separator == "{" ? "{}" : "}");
  }
  template <typename T>
  void ReadFields(T& node) {
    std::vector<std::string_view> seen;
    Words("{");
    while (ok() && !lexer_->Is("}")) {
      if (!seen.empty()) Words(",");
      const Token at = Here();
      std::string name;
      Name(Plain(name, "a field's name"));
      if (absl::c_linear_search(seen, at.text)) Fail(at, "field `", at.text, "` is given twice");
      seen.push_back(at.text);
      Words("=");
      bool known = false;
      ForEachField<T>([&](const auto& field) {
        if (field.name != at.text) return;
        known = true;
        Field(field.name, node.*field.member);
      });
      if (!known) Fail(at, "`", NodeName<T>(), "` has no field `", at.text, "`");
    }
    ForEachField<T>([&](const auto& field) {
      if constexpr (std::is_same_v<std::decay_t<decltype(node.*field.member)>, std::string>) {
        if ((node.*field.member).empty())
          Fail(Here(), "`", NodeName<T>(), "` lacks the field `", field.name, "`");
      }
    });
    Words("}");
  }

  void Items(auto& items, auto&& form, auto&& more) {
    if (out_) {
      for (auto& item : items) form(item);
    } else {
      while (ok() && more()) form(items.emplace_back());
    }
  }

  std::string* out_ = nullptr;
  TextLexer* lexer_ = nullptr;
  absl::Status status_;
};

// "symbol seq in 1..2048"
void Form(Text& text, SymbolDecl& symbol);

}  // namespace hackc::ir
