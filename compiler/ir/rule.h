// SPDX-License-Identifier: MIT
// Rules of the verifiers. A verifier's header opens with what its rules demand and holds their
// table. Code names a rule by its word, which is looked up in that table when the code is compiled:
// no message has a rule that the table lacks. tests/invalid/ has a text for each rule that breaks
// just it.
//
//   inline constexpr auto kLoopRules = Rules('L', {"digits", "engine"});        // L1 and L2
//   void Error(RuleIn<kLoopRules> rule, std::string_view message);
//   Error("engine", "...");                  // "...: ... [L2 engine]"
//   Error("engin", "...");                   // does not compile
//
// Thread safety: pure functions and constants.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "compiler/ir/buffer.h"
#include "compiler/support/cat.h"

namespace hackc::ir {

inline constexpr size_t kMaxRank = 8;  // of values, buffers and arrays

// Printed as "K1 launch". Numbers are stable: new rules go to the end of their table.
struct Rule {
  char level = 0;
  int number = 0;
  std::string_view name;
  std::string Id() const { return Cat(std::string(1, level), number); }
};

template <size_t kCount>
consteval std::array<Rule, kCount> Rules(char level, const char* const (&names)[kCount]) {
  std::array<Rule, kCount> rules;
  for (size_t i = 0; i < kCount; ++i) rules[i] = {level, static_cast<int>(i) + 1, names[i]};
  return rules;
}

// A rule of one table, made of its word.
template <const auto& kRules>
class RuleIn {
 public:
  // Implicit, so that a check names its rule by the word alone.
  consteval RuleIn(const char* name) : rule_(Find(name)) {}  // NOLINT(google-explicit-constructor)
  const Rule& operator*() const { return *rule_; }

 private:
  static consteval const Rule* Find(std::string_view name) {
    for (const Rule& rule : kRules) {
      if (rule.name == name) return &rule;
    }
    throw "the table has no rule of this name";  // while compiling only
  }
  const Rule* rule_;
};

// "line 7: kernel k / store @y: MESSAGE [S9 rank]"; the line where it is known, of the text that
// the module or function was parsed from.
inline std::string ErrorText(SourceLine line, std::string_view path, const Rule& rule,
                             std::string_view message) {
  const std::string where = line.number ? Cat("line ", line.number, ": ") : std::string();
  return Cat(where, path, ": ", message, " [", rule.Id(), " ", rule.name, "]");
}

}  // namespace hackc::ir
