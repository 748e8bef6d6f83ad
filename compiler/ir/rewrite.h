// SPDX-License-Identifier: MIT
// Equality, walks and rewriting of statements, for every level. Statements are immutable: a rewrite
// returns a new block in which every subtree that did not change is the same handle.
//
//   // Unroll loops of one iteration.
//   Block out = RewriteStmts(body, [](const Stmt& s) -> std::optional<Block> {
//     const For* loop = As<For>(s);
//     if (!loop || AsInt(loop->extent) != 1) return std::nullopt;
//     return SubstituteVars(loop->body, [&](const std::string& name) {
//       return name == loop->axis ? IntLit(0) : nullptr;
//     });
//   });
//
// Names are unique in a function (the verifiers demand it), so substitution needs no renaming.
// Thread safety: pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "compiler/ir/stmt.h"

namespace hackc::ir {

bool Equal(const Stmt& a, const Stmt& b);  // structural
bool Equal(const Block& a, const Block& b);
bool Equal(const Function& a, const Function& b);

// Bottom-up: `rewrite` sees each statement after its children; nullopt keeps it, a block (maybe
// empty) takes its place. A statement shared by several places is rewritten once.
Block RewriteStmts(const Block& block,
                   const std::function<std::optional<Block>(const Stmt&)>& rewrite);

// Each whole expression that a statement holds (absent ones are skipped); null keeps it. For a
// change of single nodes call Rewrite(e, ...) or Substitute(e, ...) inside.
Block MapExprs(const Block& block, const std::function<Expr(const Expr&)>& map);

// Replaces variables by name; null keeps a variable.
Block SubstituteVars(const Block& block,
                     const std::function<Expr(const std::string&)>& replacement);

// Renames what is declared and every use of it: axes, lets, accumulators, buffers.
Block RenameAll(const Block& block, const std::function<std::string(const std::string&)>& rename);

// Parents first, in program order.
void WalkStmts(const Block& block, const std::function<void(const Stmt&)>& visit);
// Each whole expression, in program order.
void WalkExprs(const Block& block, const std::function<void(const Expr&)>& visit);

// Operands of one expression in order; a load's guard last, even when absent.
std::vector<Expr> Children(const Expr& e);

// The statements that `s` holds: body, then, or an empty block.
const Block& ChildBlock(const Stmt& s);

}  // namespace hackc::ir
