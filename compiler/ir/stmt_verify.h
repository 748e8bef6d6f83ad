// SPDX-License-Identifier: MIT
// What Loop, Tile and Kernel IR have in common, verified once; each level's verifier adds its own
// rules.
//
//   S1 name      names of functions, buffers and values are made of letters, digits, `_` and `.`;
//                symbols are what expressions read as such, not `true` or `thread.x`
//   S2 unique    each name is defined once in a function
//   S3 defined   a name is used after its definition, in the body that holds it, as what it is
//   S4 symbol    0 <= min <= max < 2^31
//   S5 shape     a buffer's extents are i32 over symbols, positive within their bounds; at most 8
//                of them; a state has at most 2^24 elements
//   S6 kind      statements, loops and expressions are of kinds that the level knows
//   S7 extent    a loop's extent is an i32 expression that loads from `read` buffers only
//   S8 dtype     loads, variables and stored values have the dtype of what they name; conditions
//                are bool, indices integers; operands of reductions are f32; bf16 and f16 are
//                loaded, cast, chosen and stored, and not computed in
//   S9 rank      there are as many indices as dimensions
//   S10 bounds   every index is provably inside its dimension, given the axes, guards and
//                conditions round it
//   S11 access   only `write` and `readwrite` buffers are written, only `read` and `readwrite` ones
//                are read
//   S12 operands a reduction gets as many operands as its monoid takes
//   S13 depth    expressions nest at most kMaxExprDepth levels, statements kMaxBlockDepth
//   S14 overflow i32 arithmetic stays within 32 bits, given the bounds of symbols and axes; shifts
//                are by fewer bits than there are, divisors are provably not 0
//   Not checked: that iterations of free loops write apart.
//
// Thread safety: an object belongs to one thread.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/ir/bounds_proof.h"
#include "compiler/ir/rule.h"
#include "compiler/ir/stmt.h"
#include "compiler/support/cat.h"

namespace hackc::ir {

inline constexpr auto kStmtRules =
    Rules('S', {"name", "unique", "defined", "symbol", "shape", "kind", "extent", "dtype", "rank",
                "bounds", "access", "operands", "depth", "overflow"});

// What a name stands for.
struct NameInfo {
  enum class Kind : uint8_t { kAxis, kLet, kScalarState, kState, kGlobal, kAlloc };
  Kind kind = Kind::kLet;
  DType dtype = DType::kF32;
  std::vector<Expr> extents;
  Access access = Access::kReadWrite;
  const Alloc* alloc = nullptr;
  Monoid monoid = Monoid::kSum;

  bool IsState() const { return kind == Kind::kScalarState || kind == Kind::kState; }
  bool IsBuffer() const { return kind == Kind::kGlobal || kind == Kind::kAlloc; }
  bool IsIn(MemorySpace space) const { return alloc && alloc->space == space; }
};

bool OverSymbols(const Expr& e);  // arithmetic on symbols and literals
inline bool IsPowerOfTwo(int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

// What a level knows.
struct Level {
  std::string_view name;  // opens every path: "kernel"
  bool (*holds)(const Stmt& s);
  std::vector<LoopKind> loops;
  bool threads = false;         // builtins and shuffles
  bool bounds = true;           // indices are proved inside their dimensions
  bool states_by_load = false;  // states are read by loads, scalars too
};

class StmtVerifier {
 public:
  StmtVerifier(Level level, const Function& fn);
  virtual ~StmtVerifier() = default;

  std::vector<std::string> Run();

 protected:
  // The level's own rules; called where the statement's names are known, before its body is walked.
  virtual void Declare() {}
  virtual void Check(const Stmt&) {}
  virtual void CheckExpr(const Expr&) {}  // each whole expression
  virtual void After(const Stmt&) {}      // when the body has been walked

  void Error(RuleIn<kStmtRules> rule, const auto&... parts) { Report(*rule, Cat(parts...)); }
  void Report(const Rule& rule, std::string_view message);
  const NameInfo* Find(const std::string& name) const;
  // All that `e` loads is the same throughout the function.
  bool ReadsConstants(const Expr& e) const;
  // Rank, index types and bounds of an access of `width` elements along the last dimension.
  void CheckAccess(const std::string& name, const std::vector<Expr>& indices, int64_t width);
  // The same for a register array or buffer that a statement names, which must be one and be
  // readable / writable.
  const NameInfo* Memory(const std::string& name, bool read, bool write);
  void Expression(const Expr& e, std::string_view what, std::optional<DType> dtype);
  void Condition(const Expr& e);  // absent or bool

  const Function& fn_;
  Level level_;
  AccessProver prover_;
  std::vector<Stmt> nest_;  // statements round the current one, itself included
  SourceLine line_ = {};    // of the declaration that is checked

 private:
  void DeclareName(const std::string& name, NameInfo info);
  void VerifyBlock(const Block& block);
  void LeaveScope(size_t mark);  // forgets the names declared since
  void VerifyStmt(const Stmt& s);
  void Visit(const Expr& e);
  void VerifyArithmetic(const Expr& e);
  void VerifyVar(const Var& var);
  void VerifyLoad(const Load& load, DType dtype);
  void VerifyWrite(const Store& store);
  void VerifyUpdate(const Accumulate& update);

  std::vector<std::string> errors_;
  std::set<std::string> defined_;  // ever
  std::set<std::string> symbols_;
  std::unordered_map<std::string, NameInfo> names_;  // in scope
  std::vector<std::string> scope_;
};

}  // namespace hackc::ir
