// SPDX-License-Identifier: MIT
#include "compiler/ir/tensor_text.h"

#include "compiler/ir/module_text.h"

namespace hackc::ir {
namespace {

// One operation; axes become known as they are read.
class OpText {
 public:
  OpText(Text& text, const ModuleScope& scope) : text_(text) {
    text.scope = scope.Expressions();
    text.scope.variable = [this](std::string_view name) {
      return axes_.contains(name) ? std::optional(DType::kI32) : std::nullopt;
    };
  }

  void Form(TensorOp& op) {
    word_ = text_.Here();
    ChooseKind(text_, "Tensor", op.op);
    std::visit([&]<typename T>(const T&) { text_(NodeName<T>(), " "); }, op.op);
    if (auto* reduce = std::get_if<TensorReduce>(&op.op)) {
      const Token at = text_.Here();
      if (at.kind == TokenKind::kIdentifier && !FromName<Monoid>(at.text))
        text_.Fail(at, "`", at.text, "` is not a monoid");
      text_(reduce->monoid, " ");
    }
    text_(Quoted(op.label, "the label"), " ");
    Axes(op.axes);
    std::visit([&](auto& node) { Definition(node); }, op.op);
  }

 private:
  void Definition(TensorMap& n) { text_(" ", n.value); }
  void Definition(TensorReduce& n) { Over(n.reduce_axes, n.operands); }
  void Definition(TensorContract& n) {
    std::vector<Expr> operands;
    if (!text_.reads()) operands = {n.a, n.b};
    Over(n.contract_axes, operands);
    if (operands.size() != 2) return text_.Fail(word_, "a contract has two operands");
    n.a = operands[0];
    n.b = operands[1];
  }
  void Definition(TensorView& n) { text_(" ", n.source); }
  void Definition(TensorGather& n) { text_(" ", n.source); }
  void Definition(TensorScatter& n) {
    axes_.clear();  // the output's axes only say its shape
    text_(" update ");
    Axes(n.update_axes);
    text_(" ", AtSign(n.state, "the state"));
    Exprs("[", "]", n.indices);
    text_(" <- ", n.value);
    if (text_.Has(" when ", n.guard != nullptr)) text_(n.guard);
  }

  void Over(std::vector<TensorAxis>& axes, std::vector<Expr>& operands) {
    text_(" over ");
    Axes(axes);
    text_(" ");
    Exprs("(", ")", operands);
  }
  // "[b in batch, s in seq]"
  void Axes(std::vector<TensorAxis>& axes) {
    text_.List("[", "]", axes,
               [&](TensorAxis& axis) { text_(Plain(axis.name, "an axis"), " in ", axis.extent); });
    for (const TensorAxis& axis : axes) axes_.insert(axis.name);
  }
  void Exprs(std::string_view open, std::string_view close, std::vector<Expr>& exprs) {
    text_.List(open, close, exprs, [&](Expr& e) { text_(e); });
  }

  Text& text_;
  Token word_;
  std::set<std::string, std::less<>> axes_;
};

void DefinitionForm(Text& text, const ModuleScope& scope, TensorOp& op) {
  OpText(text, scope).Form(op);
}

}  // namespace

std::string Print(const TensorModule& module) {
  return PrintModule("tensor", module, DefinitionForm);
}

absl::StatusOr<TensorModule> ParseTensor(std::string_view text) {
  return ParseModule<TensorOp>(text, "tensor", DefinitionForm);
}

}  // namespace hackc::ir
