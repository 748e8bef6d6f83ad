// SPDX-License-Identifier: MIT
// Which axes each value of a Loop-level nest varies with, through lets, reductions and stores; what
// split_axes makes a dimension of the value's tile.
//
//   AxisDependencies d(fn);
//   d.Of("scale") == {"b", "s"};
//   d.ScopeOf("scale") == {"b", "s", "h"};  // loops round its declaration
//
// A reduction also varies with what its axis' extent varies with (causal attention ends at past + s
// + 1). Thread safety: const methods may run on several threads at once.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler/ir/stmt.h"

namespace hackc::passes {

class AxisDependencies {
 public:
  explicit AxisDependencies(const ir::Function& fn);

  std::set<std::string> Of(const std::string& name) const { return FindOr(depends_, name); }
  const std::vector<std::string>& ScopeOf(const std::string& name) const { return scope_.at(name); }

 private:
  std::set<std::string> AxesOf(const ir::Expr& e) const;
  void Collect(const ir::Block& block, const std::vector<std::string>& loops);
  void Grow(const std::string& name, const std::set<std::string>& axes);

  std::map<std::string, std::set<std::string>> depends_, extent_axes_;
  std::map<std::string, std::vector<std::string>> scope_;
  bool changed_ = false;
};

}  // namespace hackc::passes
