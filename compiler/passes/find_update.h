// SPDX-License-Identifier: MIT
// The one update of a reduction's state, with the loops round it.
//
//   let %score = ...
//   for %h { for %e { %o[%h, %e] <- %score, %v } }
//
//   FoundUpdate found = FindUpdate(body, [](const std::string& state) { return state == "o"; });
//   found.update->operands[0];  found.loops;  // %h, %e
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/stmt.h"

namespace hackc::passes {

struct FoundUpdate {
  const ir::Accumulate* update = nullptr;  // null: none. Lives as long as what was searched
  std::vector<ir::For> loops;              // outermost first
};

// The first in `block` of a state that is `wanted`, however deep.
FoundUpdate FindUpdate(const ir::Block& block, const auto& wanted) {
  for (const ir::Stmt& stmt : block) {
    const auto* update = ir::As<ir::Accumulate>(stmt);
    if (update && wanted(update->name)) return {update, {}};
    const auto* loop = ir::As<ir::For>(stmt);
    FoundUpdate found = loop ? FindUpdate(loop->body, wanted) : FoundUpdate();
    if (!found.update) continue;
    found.loops.insert(found.loops.begin(), *loop);
    return found;
  }
  return {};
}

}  // namespace hackc::passes
