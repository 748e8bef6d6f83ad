// SPDX-License-Identifier: MIT
// Equality, walks and rewriting of statements, for every level. Statements are immutable: a rewrite
// returns a new block in which every subtree that did not change is the same handle.
//
//   // Unroll loops of one iteration.
//   Block out = RewriteStmts(body, [](const For& loop) -> std::optional<Block> {
//     if (AsInt(loop.extent) != 1) return std::nullopt;
//     return SubstituteVars(loop.body, loop.axis, IntLit(0));
//   });
//
// A visit or a rewrite takes a Stmt, or nodes of one kind and then sees only those.
//
// Names are unique in a function (the verifiers demand it), so substitution needs no renaming.
// Thread safety: pure functions.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "compiler/ir/stmt.h"
#include "compiler/support/name_set.h"

namespace hackc::ir {

// Structural equality; so are blocks and functions compared.
bool SameValue(const Stmt& a, const Stmt& b);

// Bottom-up: `rewrite` sees each statement after its children; nullopt keeps it, a block (maybe
// empty) takes its place. A statement shared by several places is rewritten once.
Block RewriteEach(const Block& block,
                  const std::function<std::optional<Block>(const Stmt&)>& rewrite);
template <typename Visit>
Block RewriteStmts(const Block& block, Visit&& rewrite) {
  if constexpr (std::is_invocable_v<Visit&, const Stmt&>) {
    return RewriteEach(block, rewrite);
  } else {
    return RewriteEach(
        block, [&](const Stmt& s) { return VisitKind<std::optional<Block>>(s->node, rewrite); });
  }
}

// Each whole expression that a statement holds (absent ones are skipped); null keeps it. For a
// change of single nodes call Rewrite(e, ...) or Substitute(e, ...) inside.
Block MapExprs(const Block& block, const std::function<Expr(const Expr&)>& map);

// Replaces variables, as Substitute does.
Block SubstituteVars(const Block& block, const auto&... replacements) {
  return MapExprs(block, [&](const Expr& e) { return Substitute(e, replacements...); });
}

// Renames what is declared and every use of it: axes, lets, accumulators, buffers.
Block RenameAll(const Block& block, const std::function<std::string(const std::string&)>& rename);

// Parents first, in program order; for each statement the visits one after another.
void WalkEach(const Block& block, const std::function<void(const Stmt&)>& visit);
void WalkStmts(const Block& block, auto&&... visits) {
  WalkEach(block, [&](const Stmt& s) { (VisitHandle(s, visits), ...); });
}

// Each whole expression, in program order; or each node of one kind in them.
void WalkWholeExprs(const Block& block, const std::function<void(const Expr&)>& visit);
template <typename Visit>
void WalkExprs(const Block& block, Visit&& visit) {
  if constexpr (std::is_invocable_v<Visit&, const Expr&>) {
    WalkWholeExprs(block, visit);
  } else {
    WalkWholeExprs(block, [&](const Expr& e) { Walk(e, visit); });
  }
}

// All names that are declared or used in `block`.
std::set<std::string> NamesIn(const Block& block);
// Those of a function, for whoever makes more.
NameSet TakenNames(const Function& fn);

// `body` in the loops, the first the outermost; their own bodies do not count.
Block InLoops(const std::vector<For>& loops, Block body);

// Symbols that neither its buffers nor its body name.
void DropUnusedSymbols(Function& fn);

// Operands of one expression in order; a load's guard last, even when absent.
std::vector<Expr> Children(const Expr& e);

// The statements that `s` holds: body, then, or an empty block.
const Block& ChildBlock(const Stmt& s);

}  // namespace hackc::ir
