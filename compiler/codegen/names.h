// SPDX-License-Identifier: MIT
// C++ names for the names of an IR function. IR keeps variables (%x), buffers (@x) and symbols (x)
// apart and allows any word; C++ has one namespace and reserves words.
//
//   Names names;
//   names.Get(Names::Kind::kBuffer, "x");    // "x"
//   names.Get(Names::Kind::kVar, "x");       // "x_1"
//   names.Get(Names::Kind::kVar, "for");     // "for_1"
//
// The same question always gets the same answer; answers depend on the order of first questions
// only. Thread safety: an object belongs to one thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "compiler/support/name_set.h"

namespace hackc::codegen {

// Letters, digits and underscores of `name`; every other character becomes '_'.
std::string Sanitize(std::string_view name);

class Names {
 public:
  enum class Kind { kBuffer, kSymbol, kVar, kBuiltin };

  Names();
  const std::string& Get(Kind kind, const std::string& name);

 private:
  std::map<std::pair<Kind, std::string>, std::string> names_;
  NameSet taken_{"_", 1};
};

}  // namespace hackc::codegen
