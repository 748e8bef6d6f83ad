// SPDX-License-Identifier: MIT
#include "compiler/ir/expr_parser.h"

#include <utility>
#include <vector>

namespace hackc::ir {
namespace {

bool Takes(BinaryOp op, DType dtype) {
  switch (op) {
    case BinaryOp::kDiv:
    case BinaryOp::kPow: return IsFloat(dtype);
    case BinaryOp::kFloorDiv:
    case BinaryOp::kMod:
    case BinaryOp::kBitAnd:
    case BinaryOp::kBitXor:
    case BinaryOp::kShl:
    case BinaryOp::kShr: return IsInteger(dtype);
    case BinaryOp::kAnd:
    case BinaryOp::kOr: return dtype == DType::kBool;
    case BinaryOp::kEq:
    case BinaryOp::kNe: return true;
    default: return dtype != DType::kBool;
  }
}

bool Takes(UnaryOp op, DType dtype) {
  if (op == UnaryOp::kNot) return dtype == DType::kBool;
  if (op == UnaryOp::kNeg || op == UnaryOp::kAbs) return dtype != DType::kBool;
  return IsFloat(dtype);
}

class Parser {
 public:
  Parser(TextLexer& lexer, const ExprScope& scope) : lexer_(lexer), scope_(scope) {}

  absl::StatusOr<Expr> Parse() {
    if (depth_ >= kMaxExprDepth) return TooDeep();
    ++depth_;
    Token at = lexer_.Peek();
    auto result = ParseAny(at);
    --depth_;
    if (result.ok() && (*result)->depth > kMaxExprDepth) return TooDeep();
    return result;
  }

 private:
  absl::Status TooDeep() const {
    return lexer_.Error("expression nested more than ", kMaxExprDepth, " deep");
  }

  absl::StatusOr<Expr> ParseAny(const Token& at) {
    switch (at.kind) {
      case TokenKind::kPercentName: return ParseVariable(at);
      case TokenKind::kAtName: return ParseLoad(at);
      case TokenKind::kIdentifier: return ParseWord(at);
      case TokenKind::kInteger:
      case TokenKind::kFloat: return ParseNumber();
      case TokenKind::kPunctuation:
        if (at.text == "-") return ParseNumber();
        if (at.text == "(") return ParseInfix();
        break;
      default: break;
    }
    return lexer_.Expected("an expression");
  }

  absl::StatusOr<Expr> ParseNumber() {
    TextLexer ahead = lexer_;
    ahead.Accept("-");
    if (ahead.Peek().kind == TokenKind::kInteger) {
      bool wide = ahead.Peek().text.back() == 'l';
      HACKC_ASSIGN_OR_RETURN(int64_t value, lexer_.Integer("an integer"));
      return IntLit(value, wide ? DType::kI64 : DType::kI32);
    }
    HACKC_ASSIGN_OR_RETURN(double value, lexer_.Number("a number"));
    DType dtype = DType::kF32;
    if (lexer_.Accept(":")) {
      Token at = lexer_.Peek();
      HACKC_ASSIGN_OR_RETURN(dtype, lexer_.TakeWord<DType>());
      if (!IsFloat(dtype))
        return TextLexer::ErrorAt(at, "expected a float type for a float literal");
    }
    return FloatLit(value, dtype);
  }

  absl::StatusOr<Expr> ParseVariable(const Token& at) {
    std::optional<DType> dtype = scope_.variable ? scope_.variable(at.text) : std::nullopt;
    if (!dtype) return lexer_.Error("%", at.text, " is not defined here");
    lexer_.Take();
    return MakeVar(std::string(at.text), *dtype);
  }

  absl::StatusOr<Expr> ParseLoad(const Token& at) {
    std::optional<DType> dtype = scope_.buffer ? scope_.buffer(at.text) : std::nullopt;
    if (!dtype) return lexer_.Error("@", at.text, " is not defined here");
    lexer_.Take();
    HACKC_RETURN_IF_ERROR(lexer_.Expect("["));
    std::vector<Expr> indices;
    if (!lexer_.Is("]") && !lexer_.Is("if")) {
      do {
        HACKC_ASSIGN_OR_RETURN(Expr index, ParseTyped("an integer index", IsInteger));
        indices.push_back(std::move(index));
      } while (lexer_.Accept(","));
    }
    Expr guard;
    if (lexer_.Accept("if")) {
      HACKC_ASSIGN_OR_RETURN(guard,
                             ParseTyped("a bool guard", [](DType d) { return d == DType::kBool; }));
    }
    HACKC_RETURN_IF_ERROR(lexer_.Expect("]"));
    return MakeLoad(std::string(at.text), *dtype, std::move(indices), std::move(guard));
  }

  absl::StatusOr<Expr> ParseTyped(std::string_view what, auto accepts) {
    Token at = lexer_.Peek();
    HACKC_ASSIGN_OR_RETURN(Expr e, Parse());
    if (accepts(e->dtype)) return e;
    return TextLexer::ErrorAt(at, "expected ", what, ", got ", Name(e->dtype));
  }

  absl::StatusOr<Expr> ParseWord(const Token& at) {
    if (at.text == "inf" || at.text == "nan") return ParseNumber();
    lexer_.Take();
    if (at.text == "true" || at.text == "false") return BoolLit(at.text == "true");
    if (auto builtin = FromName<BuiltinKind>(at.text)) return MakeBuiltin(*builtin);
    if (lexer_.Is("(")) return ParseCall(at);
    if (scope_.symbol && !scope_.symbol(at.text)) {
      return TextLexer::ErrorAt(at, "`", at.text, "` is not a symbol known here");
    }
    return MakeSymbol(std::string(at.text));
  }

  absl::StatusOr<std::vector<Expr>> ParseArguments(const Token& at, size_t count) {
    std::vector<Expr> arguments;
    HACKC_RETURN_IF_ERROR(lexer_.Expect("("));
    do {
      HACKC_ASSIGN_OR_RETURN(Expr argument, Parse());
      arguments.push_back(std::move(argument));
    } while (lexer_.Accept(","));
    HACKC_RETURN_IF_ERROR(lexer_.Expect(")"));
    if (arguments.size() == count) return arguments;
    return TextLexer::ErrorAt(at, "`", at.text, "` takes ", count, " arguments, got ",
                              arguments.size());
  }

  absl::StatusOr<Expr> ParseCall(const Token& at) {
    const auto dtype = FromName<DType>(at.text);
    const auto unary = FromName<UnaryOp>(at.text);
    const auto binary = FromName<BinaryOp>(at.text);
    const auto shuffle = FromName<ShuffleKind>(at.text);
    const bool select = at.text == "select";
    if (!dtype && !unary && !binary && !shuffle && !select)
      return TextLexer::ErrorAt(at, "unknown function `", at.text, "`");
    HACKC_ASSIGN_OR_RETURN(const auto args, ParseArguments(at, select              ? 3
                                                               : binary || shuffle ? 2
                                                                                   : 1));
    if (dtype) return MakeCast(*dtype, args[0]);
    if (binary) return Combine(at, *binary, args[0], args[1]);
    if (unary) {
      if (!Takes(*unary, args[0]->dtype)) return WrongType(at, args[0]);
      return MakeUnary(*unary, args[0]);
    }
    if (shuffle) {
      if (!IsInteger(args[1]->dtype)) return WrongType(at, args[1]);
      return MakeShuffle(*shuffle, args[0], args[1]);
    }
    if (args[0]->dtype != DType::kBool) return WrongType(at, args[0]);
    if (args[1]->dtype != args[2]->dtype) return Mismatch(at, args[1], args[2]);
    return MakeSelect(args[0], args[1], args[2]);
  }

  absl::StatusOr<Expr> ParseInfix() {
    lexer_.Take();
    HACKC_ASSIGN_OR_RETURN(Expr a, Parse());
    if (lexer_.Accept(")")) return a;
    Token at = lexer_.Peek();
    auto op = FromName<BinaryOp>(at.text);
    if (at.kind != TokenKind::kPunctuation || !op) return lexer_.Expected("an operator or `)`");
    lexer_.Take();
    HACKC_ASSIGN_OR_RETURN(Expr b, Parse());
    HACKC_RETURN_IF_ERROR(lexer_.Expect(")"));
    return Combine(at, *op, std::move(a), std::move(b));
  }

  absl::StatusOr<Expr> Combine(const Token& at, BinaryOp op, Expr a, Expr b) {
    if (a->dtype != b->dtype && !IntegersAgree(a, b)) return Mismatch(at, a, b);
    if (!Takes(op, a->dtype)) return WrongType(at, a);
    return MakeBinary(op, std::move(a), std::move(b));
  }

  static absl::Status WrongType(const Token& at, const Expr& e) {
    return TextLexer::ErrorAt(at, "`", at.text, "` does not take ", Name(e->dtype));
  }
  static absl::Status Mismatch(const Token& at, const Expr& a, const Expr& b) {
    return TextLexer::ErrorAt(at, "operands of `", at.text, "` are ", Name(a->dtype), " and ",
                              Name(b->dtype));
  }

  TextLexer& lexer_;
  const ExprScope& scope_;
  int depth_ = 0;
};

}  // namespace

absl::StatusOr<Expr> ParseExpr(TextLexer& lexer, const ExprScope& scope) {
  return Parser(lexer, scope).Parse();
}

absl::StatusOr<Expr> ParseExpr(std::string_view text, const ExprScope& scope) {
  TextLexer lexer(text);
  HACKC_ASSIGN_OR_RETURN(Expr e, ParseExpr(lexer, scope));
  HACKC_RETURN_IF_ERROR(lexer.ExpectEnd());
  return e;
}

bool CanBeSymbol(const std::string& name) {
  const auto e = ParseExpr(name, {});
  const Symbol* symbol = e.ok() ? As<Symbol>(*e) : nullptr;
  return symbol && symbol->name == name && name != "if";  // which opens a load's guard
}

}  // namespace hackc::ir
