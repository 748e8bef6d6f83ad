// SPDX-License-Identifier: MIT
#include "compiler/ir/text_form.h"

namespace hackc::ir {

void Text::Header(std::string_view level) {
  if (out_) return (*this)("hackc ", level, " 1\n");
  if (ok()) Note(lexer_->ExpectHeader(level, 1));
}

void Text::End() {
  if (lexer_ && ok()) Note(lexer_->ExpectEnd());
}

bool Text::Next(std::string_view words, bool present) const {
  return out_ ? present : ok() && lexer_->Is(TextLexer(words).Peek().text);
}

bool Text::Has(std::string_view words, bool present) {
  const bool has = Next(words, present);
  if (has) (*this)(words);
  return has;
}

void Text::Words(std::string_view words) {
  if (out_) {
    *out_ += words;
  } else {
    for (TextLexer expected(words); ok() && !expected.AtEnd(); expected.Take())
      Note(lexer_->Expect(expected.Peek().text));
  }
}

void Text::Name(const NameForm& form) {
  if (out_) {
    *out_ += form.kind == TokenKind::kPercentName ? "%"
             : form.kind == TokenKind::kAtName    ? "@"
                                                  : "";
    *out_ += form.kind == TokenKind::kString ? PrintString(form.name) : form.name;
  } else if (ok()) {
    Note(Into(form.name, lexer_->Name(form.kind, form.what)));
  }
}

// thread(extent, stride), register(extent) or matrix(extent).
void Text::Value(Digit& digit) {
  (*this)(digit.kind, "(", Number(digit.extent, "the digit's extent"));
  if (Has(", ", digit.kind == Digit::Kind::kThread || digit.stride != 1))
    (*this)(Number(digit.stride, "the digit's stride"));
  Words(")");
}

void Form(Text& text, SymbolDecl& symbol) {
  symbol.line = text.Line();
  text("symbol ", Plain(symbol.name, "the symbol's name"), " in ",
       Number(symbol.min, "the smallest value"), "..", Number(symbol.max, "the largest value"),
       "\n");
}

}  // namespace hackc::ir
