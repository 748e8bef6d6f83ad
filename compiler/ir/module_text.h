// SPDX-License-Identifier: MIT
// Text of Module<Op>, written once for Graph and Tensor IR: symbols, sources, segments. A level adds how it
// writes one operation.
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

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/expr_parser.h"
#include "compiler/ir/value.h"

namespace hackc::ir {

// What is declared where the parser stands.
struct ModuleScope {
  std::set<std::string, std::less<>> symbols;
  std::map<std::string, ValueType, std::less<>> values;
  // For shapes and index expressions: the symbols, and values as buffers; no variables.
  ExprScope Expressions() const;
};

std::string PrintType(const ValueType& type);                              // "bf16[batch, 64]"
void PrintNames(const std::vector<std::string>& names, std::string& out);  // "(%a, %b)"
// Everything before the first segment.
void PrintPreamble(std::string_view level, const std::string& name,
                   const std::vector<SymbolDecl>& symbols, const std::vector<SourceDecl>& sources,
                   std::string& out);
void PrintSource(const SourceDecl& source, int indent, std::string& out);

absl::StatusOr<ValueType> ParseType(TextLexer& lexer, const ModuleScope& scope);
absl::StatusOr<std::vector<std::string>> ParseNames(TextLexer& lexer);
// "%x: bf16[4] = linear", where an operation opens: its word.
absl::StatusOr<Token> ParseHead(TextLexer& lexer, const ModuleScope& scope, std::string& out,
                                ValueType& type);
absl::Status ParsePreamble(TextLexer& lexer, std::string_view level, ModuleScope& scope,
                           std::string& name, std::vector<SymbolDecl>& symbols,
                           std::vector<SourceDecl>& sources);
// Takes source declarations as long as there are any.
absl::Status ParseSources(TextLexer& lexer, ModuleScope& scope, std::vector<SourceDecl>& sources);
absl::StatusOr<std::vector<Carry>> ParseCarries(TextLexer& lexer);

// `print_op(const Op&, std::string& out)` writes one operation on one line, without its end.
template <typename Op, typename PrintOp>
std::string PrintModule(std::string_view level, const Module<Op>& module, PrintOp&& print_op) {
  std::string out;
  PrintPreamble(level, module.name, module.symbols, module.sources, out);
  for (const Segment<Op>& segment : module.segments) {
    out += "\nsegment " + segment.name + ": repeat " + std::to_string(segment.count) + " from " +
           std::to_string(segment.first_layer) + " step " + std::to_string(segment.layer_step) +
           " carry (";
    for (size_t i = 0; i < segment.carries.size(); ++i) {
      out += (i ? ", %" : "%") + segment.carries[i].name + " = %" + segment.carries[i].initial;
    }
    out += ") {\n";
    for (const SourceDecl& source : segment.sources) PrintSource(source, 2, out);
    for (const Op& op : segment.ops) {
      out += "  ";
      print_op(op, out);
      out += "\n";
    }
    out += "  yield ";
    PrintNames(segment.yields, out);
    out += "\n} -> ";
    PrintNames(segment.results, out);
    out += "\n";
  }
  out += "\noutput ";
  PrintNames(module.outputs, out);
  out += "\n";
  return out;
}

// `parse_op(TextLexer&, const ModuleScope&)` reads one operation, which has fields `out` and `type`. Inside a
// segment the scope also knows what was declared in it; whatever else a module must keep is the verifier's job.
template <typename Op, typename ParseOp>
absl::StatusOr<Module<Op>> ParseModule(std::string_view text, std::string_view level,
                                       ParseOp&& parse_op) {
  TextLexer lexer(text);
  Module<Op> module;
  ModuleScope outside;
  HACKC_RETURN_IF_ERROR(
      ParsePreamble(lexer, level, outside, module.name, module.symbols, module.sources));
  while (lexer.Accept("segment")) {
    Segment<Op> segment;
    segment.line = {lexer.Peek().line};
    ModuleScope scope = outside;
    HACKC_ASSIGN_OR_RETURN(segment.name, lexer.Identifier("the segment's name"));
    HACKC_RETURN_IF_ERROR(lexer.Expect(":"));
    HACKC_RETURN_IF_ERROR(lexer.Expect("repeat"));
    HACKC_ASSIGN_OR_RETURN(segment.count, lexer.SmallInteger("the number of repeats"));
    HACKC_RETURN_IF_ERROR(lexer.Expect("from"));
    HACKC_ASSIGN_OR_RETURN(segment.first_layer, lexer.SmallInteger("the first layer"));
    HACKC_RETURN_IF_ERROR(lexer.Expect("step"));
    HACKC_ASSIGN_OR_RETURN(segment.layer_step, lexer.SmallInteger("the layers in a repeat"));
    HACKC_RETURN_IF_ERROR(lexer.Expect("carry"));
    HACKC_ASSIGN_OR_RETURN(segment.carries, ParseCarries(lexer));
    for (const Carry& carry : segment.carries) {
      if (const auto initial = scope.values.find(carry.initial); initial != scope.values.end()) {
        scope.values.emplace(carry.name, initial->second);
      }
    }
    HACKC_RETURN_IF_ERROR(lexer.Expect("{"));
    HACKC_RETURN_IF_ERROR(ParseSources(lexer, scope, segment.sources));
    while (!lexer.Accept("yield")) {
      if (lexer.Peek().kind != TokenKind::kPercentName) {
        return lexer.Expected("an operation or `yield`");
      }
      const SourceLine line{lexer.Peek().line};
      HACKC_ASSIGN_OR_RETURN(Op op, parse_op(lexer, scope));
      op.line = line;
      scope.values.insert_or_assign(op.out, op.type);
      segment.ops.push_back(std::move(op));
    }
    segment.yield_line = {lexer.Peek().line};
    HACKC_ASSIGN_OR_RETURN(segment.yields, ParseNames(lexer));
    HACKC_RETURN_IF_ERROR(lexer.Expect("}"));
    HACKC_RETURN_IF_ERROR(lexer.Expect("->"));
    HACKC_ASSIGN_OR_RETURN(segment.results, ParseNames(lexer));
    for (size_t i = 0; i < segment.results.size() && i < segment.yields.size(); ++i) {
      const auto yielded = scope.values.find(segment.yields[i]);
      if (yielded != scope.values.end()) {
        outside.values.insert_or_assign(segment.results[i], yielded->second);
      }
    }
    module.segments.push_back(std::move(segment));
  }
  module.line = {lexer.Peek().line};
  HACKC_RETURN_IF_ERROR(lexer.Expect("output"));
  HACKC_ASSIGN_OR_RETURN(module.outputs, ParseNames(lexer));
  HACKC_RETURN_IF_ERROR(lexer.ExpectEnd());
  return module;
}

}  // namespace hackc::ir
