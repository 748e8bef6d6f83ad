// SPDX-License-Identifier: MIT
// Proofs that an access is inside its buffer, from the extents of the axes round it and the
// conditions that hold where it stands. A proof that is not found is a refusal: what cannot be
// proved is not compiled.
//
//   AccessProver prover(fn.symbols);
//   prover.SetAxis("m", MakeSymbol("seq"));                 // 0 <= m < seq
//   size_t mark = prover.Enter();
//   prover.Assume(Lt(Axis("t") * 64 + Axis("r"), MakeSymbol("seq")));
//   prover.Less(Axis("t") * 64 + Axis("r"), MakeSymbol("seq"));   // true
//   prover.Leave(mark);
//
// Quotients and remainders of an axis whose extent is a product (block.x // 4 where the grid is
// batch * 4) are axes of their own, with the factors as extents.
// Thread safety: an object belongs to one thread.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/ir/buffer.h"
#include "compiler/ir/ranges.h"

namespace hackc::ir {

// True when no part of `e` leaves its dtype, so that proofs over whole numbers hold. What loads
// hold and are indexed by is not looked at.
bool IsExact(const Expr& e, const RangeMap& ranges);

// A score that is -inf where a mask says so: of select(c, select(d, x, -inf), -inf), what holds
// where it is not, c and d. Null for any other.
Expr MaskOf(const Expr& score);
// The values of `axis` before which `condition`, a conjunction, never holds: one for each
// comparison that says so. axis > s - 8 begins at s - 7.
std::vector<Expr> BeginsOf(const Expr& condition, const std::string& axis, const RangeMap& ranges);

class AccessProver {
 public:
  explicit AccessProver(const std::vector<SymbolDecl>& symbols) : ranges_(symbols) {}

  void SetAxis(const std::string& name, const Expr& extent);  // 0 <= name < extent, until Leave
  void SetBuiltin(BuiltinKind kind, const Expr& extent);      // 0 <= kind < extent
  void SetLet(const std::string& name, const Expr& value);    // integers

  size_t Enter() const { return facts_.size(); }
  void Assume(const Expr& condition, bool holds = true);  // bool; absent says nothing
  void Leave(size_t mark) { facts_.resize(mark); }

  bool NonNegative(const Expr& e);
  bool Less(const Expr& a, const Expr& b);          // a < b
  Expr Known(const Expr& e) { return Resolve(e); }  // lets replaced by their values
  Range BoundsOf(const Expr& e) { return Bounds(Resolve(e), ranges_); }

 private:
  // Lets, builtins, quotients and remainders replaced by what proofs know.
  Expr Resolve(const Expr& e);
  Expr ResolveNode(const Expr& e);
  bool Prove(const Expr& goal);
  void AssumeBelow(const Expr& axis, const Expr& extent);

  RangeMap ranges_;
  std::unordered_map<std::string, Expr> lets_;
  std::unordered_map<Expr, Expr, ExprHash, ExprEqual> axes_;  // quotients and remainders
  std::vector<Expr> facts_;                                   // each is >= 0
};

}  // namespace hackc::ir
