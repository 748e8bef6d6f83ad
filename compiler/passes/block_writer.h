// SPDX-License-Identifier: MIT
// What a pass writes: statement after statement, into the innermost block that is open.
//
//   class Doubler : private BlockWriter {
//     const Expr v = EmitLet("v", x * 2);
//     const Block body = Inside([&] { Emit(Store{...}); });  // a block of its own
//     EmitIn(loops, body);
//
// Thread safety: an object belongs to one thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/rewrite.h"

namespace hackc::passes {

class BlockWriter {
 protected:
  void Emit(auto node) { out_.push_back(ir::MakeStmt(std::move(node))); }
  void EmitAll(const ir::Block& block) { out_.insert(out_.end(), block.begin(), block.end()); }
  void EmitIn(const std::vector<ir::For>& loops, ir::Block body) {
    EmitAll(ir::InLoops(loops, std::move(body)));
  }
  ir::Expr EmitLet(const std::string& name, const ir::Expr& value) {
    Emit(ir::Let{name, value});
    return ir::MakeVar(name, value->dtype);
  }
  // What `visit` emits.
  ir::Block Inside(auto&& visit) {
    ir::Block outer = std::exchange(out_, {});
    visit();
    return std::exchange(out_, std::move(outer));
  }

 private:
  ir::Block out_;
};

}  // namespace hackc::passes
