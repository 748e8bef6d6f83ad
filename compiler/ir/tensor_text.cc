// SPDX-License-Identifier: MIT
#include "compiler/ir/tensor_text.h"

#include "compiler/ir/module_text.h"
#include "compiler/support/cat.h"

namespace hackc::ir {
namespace {

constexpr std::string_view kKinds[] = {"map", "reduce", "contract", "view", "gather", "scatter"};

std::string AxesText(const std::vector<TensorAxis>& axes) {
  std::string out = "[";
  for (const TensorAxis& axis : axes) {
    out += Cat(out.size() > 1 ? ", " : "", axis.name, " in ", Print(axis.extent));
  }
  return out + "]";
}

std::string ExprsText(const std::vector<Expr>& exprs) {
  std::string out;
  for (const Expr& e : exprs) out += (out.empty() ? "" : ", ") + Print(e);
  return out;
}

struct Printer {
  std::string& out;
  void operator()(const TensorMap& n) const { out += " " + Print(n.value); }
  void operator()(const TensorReduce& n) const {
    out += Cat(" over ", AxesText(n.reduce_axes), " (", ExprsText(n.operands), ")");
  }
  void operator()(const TensorContract& n) const {
    out += Cat(" over ", AxesText(n.contract_axes), " (", ExprsText({n.a, n.b}), ")");
  }
  void operator()(const TensorView& n) const { out += " " + Print(n.source); }
  void operator()(const TensorGather& n) const { out += " " + Print(n.source); }
  void operator()(const TensorScatter& n) const {
    out += Cat(" update ", AxesText(n.update_axes), " @", n.state, "[", ExprsText(n.indices),
               "] <- ", Print(n.value));
    if (n.guard) out += " when " + Print(n.guard);
  }
};

void PrintOp(const TensorOp& op, std::string& out) {
  out += Cat("%", op.out, ": ", PrintType(op.type), " = ", kKinds[op.op.index()]);
  if (const auto* reduce = std::get_if<TensorReduce>(&op.op)) out += Cat(" ", Name(reduce->monoid));
  out += Cat(" ", PrintString(op.label), " ", AxesText(op.axes));
  std::visit(Printer{out}, op.op);
}

// Reads one operation; axes become known as they are read.
class OpParser {
 public:
  OpParser(TextLexer& lexer, const ModuleScope& scope)
      : lexer_(lexer), scope_(scope.Expressions()) {
    scope_.variable = [this](std::string_view name) -> std::optional<DType> {
      return axes_.find(name) == axes_.end() ? std::nullopt : std::optional(DType::kI32);
    };
  }

  absl::StatusOr<TensorOp> Parse(const ModuleScope& scope) {
    TensorOp op;
    HACKC_ASSIGN_OR_RETURN(const Token word, ParseHead(lexer_, scope, op.out, op.type));
    Monoid monoid = Monoid::kSum;
    if (word.text == "reduce") {
      const Token name = lexer_.Peek();
      HACKC_RETURN_IF_ERROR(lexer_.Identifier("a monoid").status());
      const auto found = MonoidFromName(name.text);
      if (!found) return TextLexer::ErrorAt(name, "`", name.text, "` is not a monoid");
      monoid = *found;
    }
    HACKC_ASSIGN_OR_RETURN(op.label, lexer_.String("the label"));
    HACKC_ASSIGN_OR_RETURN(op.axes, Axes());
    HACKC_ASSIGN_OR_RETURN(op.op, Kind(word, monoid));
    return op;
  }

 private:
  absl::StatusOr<TensorOpVariant> Kind(const Token& word, Monoid monoid) {
    if (word.text == "map" || word.text == "view" || word.text == "gather") {
      HACKC_ASSIGN_OR_RETURN(Expr value, ParseExpr(lexer_, scope_));
      if (word.text == "map") return TensorMap{value};
      if (word.text == "view") return TensorView{value};
      return TensorGather{value};
    }
    if (word.text == "reduce" || word.text == "contract") {
      HACKC_RETURN_IF_ERROR(lexer_.Expect("over"));
      HACKC_ASSIGN_OR_RETURN(std::vector<TensorAxis> axes, Axes());
      HACKC_ASSIGN_OR_RETURN(std::vector<Expr> operands, Exprs("(", ")"));
      if (word.text == "reduce") return TensorReduce{monoid, std::move(axes), std::move(operands)};
      if (operands.size() != 2) return TextLexer::ErrorAt(word, "a contract has two operands");
      return TensorContract{std::move(axes), operands[0], operands[1]};
    }
    if (word.text == "scatter") {
      TensorScatter scatter;
      HACKC_RETURN_IF_ERROR(lexer_.Expect("update"));
      axes_.clear();  // the output's axes only say its shape
      HACKC_ASSIGN_OR_RETURN(scatter.update_axes, Axes());
      HACKC_ASSIGN_OR_RETURN(scatter.state, lexer_.AtName("the state"));
      HACKC_ASSIGN_OR_RETURN(scatter.indices, Exprs("[", "]"));
      HACKC_RETURN_IF_ERROR(lexer_.Expect("<-"));
      HACKC_ASSIGN_OR_RETURN(scatter.value, ParseExpr(lexer_, scope_));
      if (lexer_.Accept("when")) {
        HACKC_ASSIGN_OR_RETURN(scatter.guard, ParseExpr(lexer_, scope_));
      }
      return scatter;
    }
    return TextLexer::ErrorAt(word, "`", word.text, "` is not a Tensor operation");
  }

  // "[b in batch, s in seq]"
  absl::StatusOr<std::vector<TensorAxis>> Axes() {
    std::vector<TensorAxis> axes;
    HACKC_RETURN_IF_ERROR(lexer_.List("[", "]", [&]() -> absl::Status {
      TensorAxis& axis = axes.emplace_back();
      HACKC_ASSIGN_OR_RETURN(axis.name, lexer_.Identifier("an axis"));
      HACKC_RETURN_IF_ERROR(lexer_.Expect("in"));
      return Into(axis.extent, ParseExpr(lexer_, scope_));
    }));
    for (const TensorAxis& axis : axes) axes_.insert(axis.name);
    return axes;
  }

  absl::StatusOr<std::vector<Expr>> Exprs(std::string_view open, std::string_view close) {
    std::vector<Expr> exprs;
    HACKC_RETURN_IF_ERROR(lexer_.List(
        open, close, [&] { return Into(exprs.emplace_back(), ParseExpr(lexer_, scope_)); }));
    return exprs;
  }

  TextLexer& lexer_;
  ExprScope scope_;
  std::set<std::string, std::less<>> axes_;
};

}  // namespace

std::string Print(const TensorOp& op) {
  std::string out;
  PrintOp(op, out);
  return out;
}

std::string Print(const TensorModule& module) { return PrintModule("tensor", module, PrintOp); }

absl::StatusOr<TensorModule> ParseTensor(std::string_view text) {
  return ParseModule<TensorOp>(text, "tensor", [](TextLexer& lexer, const ModuleScope& scope) {
    return OpParser(lexer, scope).Parse(scope);
  });
}

}  // namespace hackc::ir
