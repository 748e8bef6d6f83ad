// SPDX-License-Identifier: MIT
#include "compiler/ir/text_lexer.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
namespace hackc::ir {
namespace {

constexpr std::string_view kDouble[] = {
    "<-", "->", "//", "<=", "==", "!=", "&&", "||", "<<", ">>", ".."};
constexpr std::string_view kSingle = "()[]{},:;=<>+-*/%&^|!?";

bool IsNameChar(char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.'; }

std::string Describe(const Token& token) {
  if (token.kind == TokenKind::kEnd) return "the end of the text";
  if (token.kind == TokenKind::kInvalid) return token.string;
  const bool percent = token.kind == TokenKind::kPercentName;
  const std::string_view sigil = percent ? "%" : token.kind == TokenKind::kAtName ? "@" : "";
  return Cat("`", sigil, token.text.substr(0, sigil.empty() ? 60 : token.text.npos), "`");
}

}  // namespace

template <typename Float>
std::string PrintFloat(Float value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (std::isnan(value)) return "nan";
  std::string text = Cat(value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}
template std::string PrintFloat(double value);
template std::string PrintFloat(float value);

std::string PrintString(std::string_view text) {
  return Cat("\"", absl::CHexEscape(absl::string_view(text.data(), text.size())), "\"");
}

bool IsName(std::string_view name) { return !name.empty() && absl::c_all_of(name, IsNameChar); }

TextLexer::TextLexer(std::string_view text) : text_(text) {
  if (text.size() > kMaxTextBytes) {
    token_ = {TokenKind::kInvalid, {}, Cat("a text of more than ", kMaxTextBytes, " bytes"), 1, 1};
    position_ = text.size();
    return;
  }
  Scan();
}

Token TextLexer::Take() {
  Token token = std::move(token_);
  Scan();
  return token;
}

bool TextLexer::Is(std::string_view word) const {
  return (token_.kind == TokenKind::kPunctuation || token_.kind == TokenKind::kIdentifier) &&
         token_.text == word;
}

bool TextLexer::Accept(std::string_view word) {
  if (!Is(word)) return false;
  Scan();
  return true;
}

absl::Status TextLexer::Expect(std::string_view word) {
  return Accept(word) ? absl::OkStatus() : Expected(Cat("`", word, "`"));
}

absl::Status TextLexer::ExpectEnd() {
  return AtEnd() ? absl::OkStatus() : Expected("the end of the text");
}

absl::Status TextLexer::ExpectHeader(std::string_view level, int version) {
  HACKC_RETURN_IF_ERROR(Expect("hackc"));
  HACKC_RETURN_IF_ERROR(Expect(level));
  Token at = token_;
  HACKC_ASSIGN_OR_RETURN(int64_t found, Integer("the version of the text form"));
  if (found == version) return absl::OkStatus();
  return ErrorAt(at, "version ", found, " of the ", level, " text, this build reads ", version);
}

absl::StatusOr<std::string> TextLexer::Name(TokenKind kind, std::string_view what) {
  if (token_.kind != kind) return Expected(what);
  Token name = Take();
  return kind == TokenKind::kString ? std::move(name.string) : std::string(name.text);
}

absl::StatusOr<int64_t> TextLexer::Integer(std::string_view what) {
  Token at = token_;
  bool negative = Accept("-");
  if (token_.kind != TokenKind::kInteger) return Expected(what);
  std::string text = Cat(negative ? "-" : "", token_.text);
  if (text.back() == 'l') text.pop_back();
  int64_t value = 0;
  auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) {
    return ErrorAt(at, what, ": ", text, " does not fit 64 bits");
  }
  Scan();
  return value;
}

absl::StatusOr<int> TextLexer::SmallInteger(std::string_view what) {
  Token at = token_;
  HACKC_ASSIGN_OR_RETURN(int64_t value, Integer(what));
  if (value < -kSmallInteger || value > kSmallInteger) {
    return ErrorAt(at, what, ": ", value, " is beyond ", kSmallInteger);
  }
  return static_cast<int>(value);
}

absl::StatusOr<double> TextLexer::Number(std::string_view what) {
  Token at = token_;
  bool negative = Accept("-");
  double value = 0;
  if (Is("inf")) {
    value = std::numeric_limits<double>::infinity();
  } else if (Is("nan")) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (token_.kind == TokenKind::kInteger || token_.kind == TokenKind::kFloat) {
    const char* end = token_.text.data() + token_.text.size();
    auto result = std::from_chars(token_.text.data(), end, value);
    if (result.ec != std::errc() || result.ptr != end) {
      return ErrorAt(at, what, ": ", token_.text, " is not a number of double range");
    }
  } else {
    return Expected(what);
  }
  Scan();
  return negative ? -value : value;
}

absl::Status TextLexer::Expected(std::string_view what) const {
  return ErrorAt(token_, "expected ", what, ", got ", Describe(token_));
}

void TextLexer::SkipSpace() {
  while (position_ < text_.size()) {
    char c = text_[position_];
    if (c == '\n') {
      ++line_;
      line_start_ = position_ + 1;
    } else if (c == '#') {
      while (position_ < text_.size() && text_[position_] != '\n') ++position_;
      continue;
    } else if (c != ' ' && c != '\t' && c != '\r') {
      return;
    }
    ++position_;
  }
}

void TextLexer::Scan() {
  SkipSpace();
  token_ = Token();
  token_.line = line_;
  token_.column = static_cast<int>(position_ - line_start_) + 1;
  if (position_ >= text_.size()) return;
  const size_t start = position_;
  auto at = [&](size_t offset) {
    return position_ + offset < text_.size() ? text_[position_ + offset] : '\0';
  };
  auto finish = [&](TokenKind kind, size_t skip) {
    token_.kind = kind;
    token_.text = text_.substr(start + skip, position_ - start - skip);
  };
  auto invalid = [&](std::string what) {
    token_.kind = TokenKind::kInvalid;
    token_.string = std::move(what);
    position_ = text_.size();
  };
  auto digits = [&] {
    while (absl::ascii_isdigit(at(0))) ++position_;
  };
  char c = at(0);
  if (absl::ascii_isalpha(c) || c == '_') {
    while (IsNameChar(at(0))) ++position_;
    return finish(TokenKind::kIdentifier, 0);
  }
  if ((c == '%' || c == '@') && IsNameChar(at(1))) {
    ++position_;
    while (IsNameChar(at(0))) ++position_;
    return finish(c == '%' ? TokenKind::kPercentName : TokenKind::kAtName, 1);
  }
  if (absl::ascii_isdigit(c)) {
    TokenKind kind = TokenKind::kInteger;
    digits();
    if (at(0) == '.' && absl::ascii_isdigit(at(1))) {
      kind = TokenKind::kFloat;
      ++position_;
      digits();
    }
    size_t sign = at(1) == '+' || at(1) == '-' ? 2 : 1;
    if (at(0) == 'e' && absl::ascii_isdigit(at(sign))) {
      kind = TokenKind::kFloat;
      position_ += sign;
      digits();
    }
    if (kind == TokenKind::kInteger && at(0) == 'l') ++position_;
    return finish(kind, 0);
  }
  if (c == '"') {
    ++position_;
    while (position_ < text_.size() && at(0) != '"' && at(0) != '\n')
      position_ += at(0) == '\\' ? 2 : 1;
    if (position_ >= text_.size() || at(0) != '"')
      return invalid("a string that is not closed on its line");
    ++position_;
    finish(TokenKind::kString, 0);
    std::string error;
    if (!absl::CUnescape(absl::string_view(token_.text.data() + 1, token_.text.size() - 2),
                         &token_.string, &error)) {
      return invalid(Cat("a string with a bad escape: ", error));
    }
    return;
  }
  const bool pair = absl::c_linear_search(kDouble, text_.substr(position_, 2));
  if (pair || kSingle.find(c) != std::string_view::npos) {
    position_ += pair ? 2 : 1;
    return finish(TokenKind::kPunctuation, 0);
  }
  invalid(Cat("the character `", absl::CHexEscape(std::string(1, c)), "`"));
}

}  // namespace hackc::ir
