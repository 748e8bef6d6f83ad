// SPDX-License-Identifier: MIT
// Text of Module<Op>, written once for Graph and Tensor IR: symbols, sources, segments. A level
// adds how it writes one operation.
//
//   hackc graph 1
//   module "qwen2"
//   symbol seq in 1..2048
//   input %input_ids: i32[1, seq]
//   weight %table: bf16[96, 32] "model.embed_tokens.weight"
//
//   segment embed: repeat 1 from 0 step 1 carry () {
//     %x: bf16[1, seq, 32] = embedding(%input_ids, %table)
//     yield (%x)
//   } -> (%hidden)
//
//   output (%hidden)
//
// Thread safety: pure functions.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/text_form.h"
#include "compiler/ir/value.h"

namespace hackc::ir {

// What is declared where the parser stands.
struct ModuleScope {
  std::set<std::string, std::less<>> symbols;
  std::map<std::string, ValueType, std::less<>> values;
  // For shapes and index expressions: the symbols, and values as buffers; no variables.
  ExprScope Expressions() const;
};

std::string PrintType(const ValueType& type);  // "bf16[batch, 64]"

void Form(Text& text, const ModuleScope& scope, ValueType& type);
void Form(Text& text, std::vector<std::string>& names);  // "(%a, %b)"
// Source declarations as long as there are any.
void Form(Text& text, ModuleScope& scope, std::string_view indent,
          std::vector<SourceDecl>& sources);

// Reading: makes `op` of the kind that the word that comes names.
template <typename... Kinds>
void ChooseKind(Text& text, std::string_view level, std::variant<Kinds...>& op) {
  if (!text.reads() || text.Choose(op)) return;
  const Token word = text.Here();
  if (word.kind != TokenKind::kIdentifier)
    return text.Note(text.lexer().Expected("an operation's name"));
  text.Fail(word, "`", word.text, "` is not a ", level, " operation");
}

// `form(text, scope, op)` is one operation behind "%x: bf16[4] = ". Inside a segment the scope also
// knows what was declared in it; whatever else a module must keep is the verifier's job.
template <typename Op>
void Form(Text& text, std::string_view level, Module<Op>& module, auto&& form) {
  ModuleScope outside;
  text.Header(level);
  text("module ", Quoted(module.name, "the module's name in quotes"), "\n");
  text.Each("symbol", module.symbols, [&](SymbolDecl& symbol) {
    Form(text, symbol);
    outside.symbols.insert(symbol.name);
  });
  Form(text, outside, "", module.sources);
  text.Each("segment", module.segments, [&](Segment<Op>& segment) {
    segment.line = text.Line();
    ModuleScope scope = outside;
    text("\nsegment ", Plain(segment.name, "the segment's name"), ": repeat ",
         Number(segment.count, "the number of repeats"), " from ",
         Number(segment.first_layer, "the first layer"), " step ",
         Number(segment.layer_step, "the layers in a repeat"), " carry ");
    text.List("(", ")", segment.carries, [&](Carry& carry) {
      text(Percent(carry.name, "the carried value's name inside"), " = ",
           Percent(carry.initial, "the carried value's start"));
      if (const ValueType* initial = FindOrNull(scope.values, carry.initial))
        scope.values.emplace(carry.name, *initial);
    });
    text(" {\n");
    Form(text, scope, "  ", segment.sources);
    text.Until("yield", segment.ops, [&](Op& op) {
      op.line = text.Line();
      if (text.reads() && text.Here().kind != TokenKind::kPercentName)
        text.Note(text.lexer().Expected("an operation or `yield`"));
      text("  ", Percent(op.out, "the operation's result"), ": ");
      Form(text, scope, op.type);
      text(" = ");
      form(text, scope, op);
      text("\n");
      scope.values.insert_or_assign(op.out, op.type);
    });
    segment.yield_line = text.Line();
    text("  yield ");
    Form(text, segment.yields);
    text("\n} -> ");
    Form(text, segment.results);
    text("\n");
    for (size_t i = 0; i < segment.results.size() && i < segment.yields.size(); ++i) {
      if (const ValueType* yielded = FindOrNull(scope.values, segment.yields[i]))
        outside.values.insert_or_assign(segment.results[i], *yielded);
    }
  });
  module.line = text.Line();
  text("\noutput ");
  Form(text, module.outputs);
  text("\n");
  text.End();
}

template <typename Op>
std::string PrintModule(std::string_view level, Module<Op> module, auto&& form) {
  std::string out;
  Text printer(out);
  Form(printer, level, module, form);
  return out;
}

template <typename Op>
absl::StatusOr<Module<Op>> ParseModule(std::string_view text, std::string_view level, auto&& form) {
  TextLexer lexer(text);
  Text reader(lexer);
  Module<Op> module;
  Form(reader, level, module, form);
  if (!reader.ok()) return reader.status();
  return module;
}

}  // namespace hackc::ir
