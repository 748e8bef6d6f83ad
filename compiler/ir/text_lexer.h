// SPDX-License-Identifier: MIT
// Tokens of the text of every IR, made on demand with line and column.
//
//   TextLexer lexer("hackc loop 1\nfn f { }");
//   HACKC_RETURN_IF_ERROR(lexer.ExpectHeader("loop", 1));
//   HACKC_RETURN_IF_ERROR(lexer.Expect("fn"));
//   HACKC_ASSIGN_OR_RETURN(std::string name, lexer.Name(TokenKind::kIdentifier, "its name"));
//
// Grammar of tokens:
//   identifier  [A-Za-z_][A-Za-z0-9_.]*                 words, symbols, thread.x
//   %name @name a sigil and [A-Za-z0-9_.]+              values and buffers
//   integer     [0-9]+ l?                               `l` marks i64; no sign
//   float       [0-9]+ (. [0-9]+)? (e [+-]? [0-9]+)?
//   string      "..." with C escapes
//   punctuation <- -> // <= == != && || << >> .. and single characters
// `#` opens a comment up to the end of its line. A `%` before a space is the operator.
//
// Thread safety: one lexer, one thread. The text must outlive the lexer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/dtype.h"
#include "compiler/ir/monoid.h"
#include "compiler/support/cat.h"
#include "compiler/support/status_macros.h"

namespace hackc::ir {

enum class TokenKind : uint8_t {
  kEnd,
  kIdentifier,
  kPercentName,
  kAtName,
  kInteger,
  kFloat,
  kString,
  kPunctuation,
  kInvalid,
};

// HACKC_ASSIGN_OR_RETURN as an expression, for lambdas of one line.
template <typename T>
absl::Status Into(T& to, absl::StatusOr<T> from) {
  HACKC_ASSIGN_OR_RETURN(to, std::move(from));
  return absl::OkStatus();
}

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;  // as written; names without their sigil
  std::string string;     // kString: unescaped; kInvalid: what is wrong
  int line = 1;
  int column = 1;
};

inline constexpr size_t kMaxTextBytes = size_t{64} << 20;
// Of every number of 32 bits in a text, so that its sums and small multiples fit as well.
inline constexpr int kSmallInteger = 1 << 24;
inline constexpr int kMaxBlockDepth = 64;  // nesting of statements, in every parser and verifier

class TextLexer {
 public:
  explicit TextLexer(std::string_view text);

  const Token& Peek() const { return token_; }
  Token Take();  // the current token, and moves on

  // True when the current token is this word or punctuation.
  bool Is(std::string_view word) const;
  bool Accept(std::string_view word);  // takes it if it is there
  // The current token as one of the words of an enumeration.
  template <NamedEnum Enum>
  std::optional<Enum> Word() const {
    return token_.kind == TokenKind::kIdentifier ? FromName<Enum>(token_.text) : std::nullopt;
  }
  template <NamedEnum Enum>
  absl::StatusOr<Enum> TakeWord() {
    const std::optional<Enum> word = Word<Enum>();
    if (!word) return Expected(Choices<Enum>());
    Take();
    return *word;
  }
  bool AtEnd() const { return token_.kind == TokenKind::kEnd; }

  absl::Status Expect(std::string_view word);
  absl::Status ExpectEnd();
  absl::Status ExpectHeader(std::string_view level, int version);  // `hackc LEVEL VERSION`

  // `what` names the thing for the error message.
  absl::StatusOr<std::string> Name(TokenKind kind, std::string_view what);  // or string
  absl::StatusOr<int64_t> Integer(std::string_view what);                   // with an optional sign
  absl::StatusOr<int> SmallInteger(std::string_view what);                  // within kSmallInteger
  // Integer, float, inf or nan, with an optional sign.
  absl::StatusOr<double> Number(std::string_view what);

  // InvalidArgument "line 3, column 7: expected WHAT, got `token`".
  absl::Status Expected(std::string_view what) const;
  // InvalidArgument "line 3, column 7: MESSAGE", at the current token.
  absl::Status Error(const auto&... message) const { return ErrorAt(token_, message...); }
  template <typename... Parts>
  static absl::Status ErrorAt(const Token& token, const Parts&... message) {
    return absl::InvalidArgumentError(
        Cat("line ", token.line, ", column ", token.column, ": ", message...));
  }

 private:
  template <NamedEnum Enum>
  static std::string Choices() {
    if (std::is_same_v<Enum, DType>) return "a type such as f32";
    if (std::is_same_v<Enum, Monoid>) return "a monoid such as sum";
    std::string choices;
    for (std::string_view name : kNamesOf<Enum>)
      choices += Cat(choices.empty() ? "one of " : ", ", name);
    return choices;
  }
  void SkipSpace();
  void Scan();

  std::string_view text_;
  size_t position_ = 0;
  int line_ = 1;
  size_t line_start_ = 0;
  Token token_;
};

// The shortest text that reads back as the same double or float; always with a point or exponent,
// or inf, nan.
template <typename Float>
std::string PrintFloat(Float value);
// "..." with C escapes.
std::string PrintString(std::string_view text);
// True when `name` can follow a sigil.
bool IsName(std::string_view name);

}  // namespace hackc::ir
