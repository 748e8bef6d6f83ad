// SPDX-License-Identifier: MIT
// What every Module<Op> must keep, checked once for Graph and Tensor IR; a level adds its
// operations' rules.
//
//   M1 name          names of values and segments are made of letters, digits, `_` and `.`; symbols
//                    are what expressions read as such, not `true` or `thread.x`
//   M2 symbol        symbols are unique, 0 <= min <= max < 2^31
//   M3 unique        a value's name is defined once in the whole module, segments included
//   M4 defined       a value is used after its definition, where it is seen
//   M5 shape         an extent is an integer expression over declared symbols alone, positive
//                    within their bounds, of at most kMaxExprDepth levels; a value has at most 8
//                    dims
//   M6 weight        weights have constant extents; weights and states have a name, whose "{layer}"
//                    and "{layer+K}" stand in a segment and have 0 < K < step
//   M7 constant      a constant has constant extents and as many values as they say, all finite
//   M8 repeat        count >= 1, first layer >= 0, step >= 1, last layer < 2^31; a segment that
//                    repeats carries something
//   M9 carry         with carries, there are as many yields, of the types of the carries
//   M10 result       there are as many results as yields
//   M11 input        inputs are declared outside segments
//   M12 output       outputs are sources or results seen at the end, each at most once; there is
//                    one at least
//
// Operations' rules are the level's own. Thread safety: pure functions.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/ranges.h"
#include "compiler/ir/rule.h"
#include "compiler/ir/text_lexer.h"
#include "compiler/ir/value.h"
#include "compiler/support/cat.h"

namespace hackc::ir {

inline constexpr auto kModuleRules =
    Rules('M', {"name", "symbol", "unique", "defined", "shape", "weight", "constant", "repeat",
                "carry", "result", "input", "output"});

// What a whole verification shares.
struct ModuleReport {
  std::vector<std::string> errors;  // ErrorText
  std::set<std::string> names;      // all that were ever defined
};

// What is seen at one place of a module. A copy sees the same until it defines more, and reports to
// the same.
struct ModuleVerifier {
  ModuleReport* report;
  std::string path;  // "segment layers / %q"
  SourceLine line = {};
  RangeMap ranges;  // of the symbols
  std::set<std::string, std::less<>> symbols;
  std::map<std::string, ValueType> values;
  std::map<std::string, const SourceDecl*> sources;  // of the values, those that no operation makes

  void Report(const Rule& rule, std::string_view message) {
    report->errors.push_back(ErrorText(line, path, rule, message));
  }
  void Error(RuleIn<kModuleRules> rule, const auto&... parts) { Report(*rule, Cat(parts...)); }
  const ValueType* Find(const std::string& name) const { return FindOrNull(values, name); }
  bool HasSymbol(std::string_view name) const { return symbols.contains(name); }
  bool IsState(const std::string& name) const {
    const SourceDecl* source = FindOr(sources, name);
    return source && source->kind == SourceDecl::Kind::kState;
  }

  void Symbols(const std::vector<SymbolDecl>& declared);
  void Source(const SourceDecl& source, int layer_step);  // layer_step 0: outside segments
  void Define(const std::string& name, const ValueType& type);
  std::string ShapeError(const ValueType& type) const;  // what M5 says of it, or ""
  bool CheckShape(const ValueType& type) {
    const std::string error = ShapeError(type);
    if (!error.empty()) Error("shape", error);
    return error.empty();
  }
  void Placeholders(const std::string& weight_name, int layer_step);
};

// Equal as sums: past + seq is seq + past.
bool SameExtent(const Expr& a, const Expr& b);
bool SameShape(const std::vector<Expr>& a, const std::vector<Expr>& b);
bool SameType(const ValueType& a, const ValueType& b);

// `operands(op)`: names an operation reads. `verify_op(op, verifier)`: the level's own rules;
// called where the shapes of all operands and of the result are sound. Returns all errors.
template <typename Op, typename OperandsOf, typename VerifyOp>
std::vector<std::string> VerifyModule(const Module<Op>& module, OperandsOf&& operands,
                                      VerifyOp&& verify_op) {
  ModuleReport report;
  ModuleVerifier outside{&report};
  outside.Symbols(module.symbols);
  for (const SourceDecl& source : module.sources) {
    outside.path = "%" + source.name;
    outside.line = source.line;
    outside.Source(source, 0);
  }
  std::set<std::string> segment_names;
  for (const Segment<Op>& segment : module.segments) {
    const std::string path = "segment " + segment.name;
    ModuleVerifier inside = outside;
    inside.path = path;
    inside.line = segment.line;
    if (!segment_names.insert(segment.name).second) inside.Error("unique", "defined twice");
    if (!IsName(segment.name)) inside.Error("name", "not a name");
    if (segment.count < 1 || segment.first_layer < 0 || segment.layer_step < 1) {
      inside.Error("repeat", "expected count >= 1, first layer >= 0 and step >= 1");
    } else if (segment.first_layer + (segment.count - int64_t{1}) * segment.layer_step >
               INT32_MAX) {
      inside.Error("repeat", "the last layer's number is over 2^31");
    }
    if (segment.count > 1 && segment.carries.empty()) {
      inside.Error("repeat", "repeats ", segment.count, " times and carries nothing");
    }
    std::vector<ValueType> carried;
    for (const Carry& carry : segment.carries) {
      inside.path = Cat(path, " / carry %", carry.name);
      const ValueType* type = outside.Find(carry.initial);
      if (type == nullptr) inside.Error("defined", "%", carry.initial, " is not defined here");
      carried.push_back(type == nullptr ? ValueType() : *type);
      inside.Define(carry.name, carried.back());
    }
    for (const SourceDecl& source : segment.sources) {
      inside.path = Cat(path, " / %", source.name);
      inside.line = source.line;
      inside.Source(source, segment.layer_step);
    }
    for (const Op& op : segment.ops) {
      inside.path = Cat(path, " / %", op.out);
      inside.line = op.line;
      bool sound = inside.CheckShape(op.type);
      for (const std::string& name : operands(op)) {
        const ValueType* type = inside.Find(name);
        if (type == nullptr) inside.Error("defined", "%", name, " is not defined here");
        sound = sound && type != nullptr && inside.ShapeError(*type).empty();
      }
      if (sound) verify_op(op, inside);
      inside.Define(op.out, op.type);
    }
    inside.path = path;
    inside.line = outside.line = segment.yield_line;
    if (segment.results.size() != segment.yields.size()) {
      inside.Error("result", "yields ", segment.yields.size(), " values into ",
                   segment.results.size(), " results");
    }
    if (!carried.empty() && carried.size() != segment.yields.size()) {
      inside.Error("carry", "carries ", carried.size(), " values and yields ",
                   segment.yields.size());
    }
    for (size_t i = 0; i < segment.yields.size(); ++i) {
      inside.path = Cat(path, " / yield %", segment.yields[i]);
      const ValueType* type = inside.Find(segment.yields[i]);
      if (type == nullptr) {
        inside.Error("defined", "is not defined here");
        continue;
      }
      if (i < carried.size() && !SameType(*type, carried[i])) {
        inside.Error("carry", "has another type than carry %", segment.carries[i].name);
      }
      if (i >= segment.results.size()) continue;
      outside.path = Cat(path, " / result %", segment.results[i]);
      outside.Define(segment.results[i], *type);
    }
  }
  outside.path = "output";
  outside.line = module.line;
  if (module.outputs.empty()) outside.Error("output", "the module has none");
  std::set<std::string> outputs;
  for (const std::string& name : module.outputs) {
    outside.path = "output %" + name;
    if (outside.Find(name) == nullptr) outside.Error("output", "is not defined here");
    if (!outputs.insert(name).second) outside.Error("output", "is listed twice");
  }
  return report.errors;
}

}  // namespace hackc::ir
