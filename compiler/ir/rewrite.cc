// SPDX-License-Identifier: MIT
#include "compiler/ir/rewrite.h"

#include <type_traits>
#include <unordered_map>

namespace hackc::ir {
namespace {

// Rebuilds `s` from its fields mapped in place by `map(field value) -> changed`.
Stmt MapFields(const Stmt& s, auto&& map) {
  return std::visit(
      [&](const auto& node) -> Stmt {
        using T = std::decay_t<decltype(node)>;
        T copy = node;
        bool changed = false;
        ForEachField<T>([&](const auto& field) { changed |= map(copy.*field.member); });
        return changed ? MakeStmt(std::move(copy)) : s;
      },
      s->node);
}

using StmtRewrite = std::function<std::optional<Block>(const Stmt&)>;

// Replaces `block` in place; true when anything changed. `memo` keeps handles alive, so that no
// address is used twice.
bool RewriteIn(Block& block, const StmtRewrite& rewrite, std::unordered_map<Stmt, Block>& memo) {
  Block out;
  for (const Stmt& s : block) {
    auto known = memo.find(s);
    if (known == memo.end()) {
      const Stmt rebuilt = MapFields(s, [&](auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Block>)
          return RewriteIn(value, rewrite, memo);
        return false;
      });
      known = memo.emplace(s, rewrite(rebuilt).value_or(Block{rebuilt})).first;
    }
    absl::c_copy(known->second, std::back_inserter(out));
  }
  const bool changed = out != block;
  if (changed) block = std::move(out);
  return changed;
}

Block MapAllFields(const Block& block, auto&& map) {
  return RewriteEach(
      block, [&](const Stmt& s) -> std::optional<Block> { return Block{MapFields(s, map)}; });
}

Expr RenameIn(const Expr& e, const std::function<std::string(const std::string&)>& rename) {
  return Rewrite(e, [&](const Expr& node) -> Expr {
    if (const Var* var = As<Var>(node)) {
      std::string name = rename(var->name);
      return name == var->name ? nullptr : MakeVar(std::move(name), var->dtype);
    }
    if (const Load* load = As<Load>(node)) {
      std::string name = rename(load->buffer);
      return name == load->buffer
                 ? nullptr
                 : MakeLoad(std::move(name), load->dtype, load->indices, load->guard);
    }
    return nullptr;
  });
}

}  // namespace

bool SameValue(const Stmt& a, const Stmt& b) {
  return a == b || (a && b && SameValue(a->node, b->node));
}

Block RewriteEach(const Block& block,
                  const std::function<std::optional<Block>(const Stmt&)>& rewrite) {
  Block out = block;
  std::unordered_map<Stmt, Block> memo;
  RewriteIn(out, rewrite, memo);
  return out;
}

Block MapExprs(const Block& block, const std::function<Expr(const Expr&)>& map) {
  return MapAllFields(block, [&](auto& value) {
    bool changed = false;
    ForEachExpr(value, [&](Expr& e) {
      Expr mapped = e ? map(e) : nullptr;
      if (!mapped || mapped == e) return;
      e = std::move(mapped);
      changed = true;
    });
    return changed;
  });
}

Block RenameAll(const Block& block, const std::function<std::string(const std::string&)>& rename) {
  const Block exprs = MapExprs(block, [&](const Expr& e) { return RenameIn(e, rename); });
  return MapAllFields(exprs, [&](auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
      std::string name = rename(value);
      std::swap(value, name);
      return value != name;
    }
    return false;
  });
}

std::set<std::string> NamesIn(const Block& block) {
  std::set<std::string> names;
  RenameAll(block, [&](const std::string& name) { return names.insert(name), name; });
  return names;
}

NameSet TakenNames(const Function& fn) {
  NameSet names;
  for (const BufferDecl& buffer : fn.buffers) names.Add(buffer.name);
  for (const std::string& name : NamesIn(fn.body)) names.Add(name);
  return names;
}

Block InLoops(const std::vector<For>& loops, Block body) {
  for (size_t i = loops.size(); i-- > 0;) {
    For loop = loops[i];
    loop.body = std::move(body);
    body = {MakeStmt(std::move(loop))};
  }
  return body;
}

void DropUnusedSymbols(Function& fn) {
  std::set<std::string> used;
  const auto note = [&](const Symbol& symbol) { used.insert(symbol.name); };
  WalkExprs(fn.body, note);
  ForEachExpr(fn.buffers, [&](const Expr& extent) { Walk(extent, note); });
  std::erase_if(fn.symbols, [&](const SymbolDecl& s) { return !used.contains(s.name); });
}

const Block& ChildBlock(const Stmt& s) {
  static const Block kNone;
  if (const For* loop = As<For>(s)) return loop->body;
  if (const If* branch = As<If>(s)) return branch->then;
  if (const Role* role = As<Role>(s)) return role->body;
  return kNone;
}

void WalkEach(const Block& block, const std::function<void(const Stmt&)>& visit) {
  for (const Stmt& s : block) {
    visit(s);
    WalkEach(ChildBlock(s), visit);
  }
}

void WalkWholeExprs(const Block& block, const std::function<void(const Expr&)>& visit) {
  const auto visit_present = [&](const Expr& e) {
    if (e) visit(e);
  };
  WalkStmts(block, [&](const Stmt& s) {
    std::visit([&](const auto& n) { ForEachExpr(n, visit_present); }, s->node);
  });
}

}  // namespace hackc::ir
