// SPDX-License-Identifier: MIT
// Scalar expressions, shared by Tensor, Loop, Tile and Kernel IR, and the formulas of dims and
// grids. Immutable trees with shared ownership; a handle is cheap to copy and safe to share between
// threads.
//
//   Expr m = Axis("m"), k = Axis("k");
//   Expr product = Cast(DType::kF32, Load("x", DType::kBF16, {m, k})) * FloatLit(0.5);
//   Print(product) == "(f32(@x[%m, %k]) * 0.5)"
//
// Text: %name a variable (loop axis or let), name a symbol, @name[i, j] a load, infix arithmetic
// fully parenthesised, select(c, a, b) lazy in its branches, dtype(x) a cast. Literals: 3 is i32,
// 3l is i64, 0.5 is f32, 0.5:f64 names another dtype; true, false, inf, -inf and nan.
//
// The makers fold constants (integers exactly; floats never, except through integer literals in
// index arithmetic) and nothing more; see simplify.h for rules that need ranges.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/dtype.h"

namespace hackc::ir {

struct ExprNode;

// A handle; null where a field says "may be absent".
using Expr = std::shared_ptr<const ExprNode>;

enum class UnaryOp : uint8_t {
  kNeg,
  kExp,
  kExp2,
  kLog,
  kSqrt,
  kRsqrt,
  kTanh,
  kErf,
  kSin,
  kCos,
  kAbs,
  kNot
};
HACKC_ENUM_NAMES(UnaryOp, "neg", "exp", "exp2", "log", "sqrt", "rsqrt", "tanh", "erf", "sin", "cos",
                 "abs", "not")
enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,       // floats only
  kFloorDiv,  // integers, rounds towards minus infinity
  kMod,       // integers, result has the divisor's sign
  kMin,
  kMax,
  kPow,
  kLt,
  kLe,
  kEq,
  kNe,  // bool
  kAnd,
  kOr,  // bool
  kBitAnd,
  kBitXor,
  kShl,
  kShr,  // integers
};
HACKC_ENUM_NAMES(BinaryOp, "+", "-", "*", "/", "//", "%", "min", "max", "pow", "<",
                 "<=", "==", "!=", "&&", "||", "&", "^", "<<", ">>")

struct IntLiteral {
  int64_t value;
  DType dtype;  // kI32, kI64 or kBool
};
struct FloatLiteral {
  double value;
  DType dtype;
};
struct Var {  // loop axis or let
  std::string name;
  DType dtype;
};
struct Symbol {  // runtime symbol: batch, seq, past
  std::string name;
};
// Kernel level only: hardware indices.
enum class BuiltinKind : uint8_t { kThread, kBlockX, kBlockY, kBlockZ };
HACKC_ENUM_NAMES(BuiltinKind, "thread.x", "block.x", "block.y", "block.z")
struct Builtin {
  BuiltinKind kind;
};
struct Unary {
  UnaryOp op;
  Expr a;
};
struct Binary {
  BinaryOp op;
  Expr a, b;
};
struct Select {  // lazy: the branch not taken is not evaluated
  Expr condition, a, b;
};
struct Cast {  // the only rounding there is
  DType dtype;
  Expr a;
};
// Element of a buffer. When `guard` is present and false, the value is 0 and memory is not touched.
struct Load {
  std::string buffer;
  DType dtype;
  std::vector<Expr> indices;
  Expr guard;
};
// Kernel level only: value of another lane of the warp (all 32 lanes take part).
enum class ShuffleKind : uint8_t { kXor, kIndex, kDown };
HACKC_ENUM_NAMES(ShuffleKind, "shuffle_xor", "shuffle_index", "shuffle_down")
struct Shuffle {
  ShuffleKind kind;
  Expr value;
  Expr lane;
};

using ExprVariant = std::variant<IntLiteral, FloatLiteral, Var, Symbol, Builtin, Unary, Binary,
                                 Select, Cast, Load, Shuffle>;

struct ExprNode {
  ExprVariant node;
  DType dtype;
  size_t hash;
  int depth;  // levels of nesting, capped at kMaxExprDepth by the parser and the verifiers
};

inline constexpr int kMaxExprDepth = 128;

// --- makers -------------------------------------------------------------------------------------
Expr IntLit(int64_t value, DType dtype = DType::kI32);
Expr BoolLit(bool value);
Expr FloatLit(double value, DType dtype = DType::kF32);
Expr MakeVar(std::string name, DType dtype);
Expr Axis(std::string name);  // a kI32 variable
Expr MakeSymbol(std::string name);
Expr MakeBuiltin(BuiltinKind kind);
Expr MakeUnary(UnaryOp op, const Expr& a);
Expr MakeBinary(BinaryOp op, Expr a, Expr b);  // operand dtypes must match; integer literals adapt
Expr MakeSelect(Expr condition, Expr a, Expr b);
Expr MakeCast(DType dtype, Expr a);  // identity when the dtype is the same already
Expr MakeLoad(std::string buffer, DType dtype, std::vector<Expr> indices, Expr guard = nullptr);
Expr MakeShuffle(ShuffleKind kind, Expr value, Expr lane);

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator+(const Expr& a, int64_t b);
Expr operator-(const Expr& a, int64_t b);
Expr operator*(const Expr& a, int64_t b);
Expr FloorDiv(const Expr& a, const Expr& b);
Expr FloorDiv(const Expr& a, int64_t b);
Expr CeilDiv(const Expr& a, int64_t b);  // (a + b - 1) // b
Expr Mod(const Expr& a, const Expr& b);
Expr Mod(const Expr& a, int64_t b);
Expr Min(const Expr& a, const Expr& b);
Expr Max(const Expr& a, const Expr& b);
Expr Lt(const Expr& a, const Expr& b);
Expr Le(const Expr& a, const Expr& b);
Expr And(const Expr& a, const Expr& b);  // absent or true operands vanish; both absent gives absent

// --- queries ------------------------------------------------------------------------------------
bool Equal(const Expr& a, const Expr& b);     // structural; absent equals absent
std::optional<int64_t> AsInt(const Expr& e);  // value of an integer literal
bool IsComparison(BinaryOp op);
int64_t FloorDivide(int64_t a, int64_t b);  // b is neither 0 nor -1
int64_t FloorMod(int64_t a, int64_t b);     // likewise; its a - b * FloorDivide(a, b) may not fit
std::string Print(const Expr& e);           // absent prints as ""; expr_parser.h is the inverse
inline bool SameValue(const Expr& a, const Expr& b) { return Equal(a, b); }

struct ExprEqual {
  bool operator()(const Expr& a, const Expr& b) const { return Equal(a, b); }
};
struct ExprHash {
  size_t operator()(const Expr& e) const { return e ? e->hash : 0; }
};

// Calls `visit` on each whole expression, absent ones too, that `value` holds: it is one, a list of
// them, or a node with fields that are.
template <typename T>
void ForEachExpr(T& value, auto&& visit) {
  using Value = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Value, Expr>) {
    visit(value);
  } else if constexpr (NodeWithFields<Value>) {
    ForEachField<Value>([&](const auto& field) { ForEachExpr(value.*field.member, visit); });
  } else if constexpr (requires(Value list) { list.emplace_back(); }) {
    for (auto& item : value) ForEachExpr(item, visit);
  }
}

// Calls the visits on `e` and everything below it, parents first. A visit of one kind of node sees
// only those:
//   Walk(e, [&](const Load& load) { Use(load.buffer); });
void WalkNodes(const Expr& e, const std::function<void(const Expr&)>& visit);
void Walk(const Expr& e, auto&&... visits) {
  WalkNodes(e, [&](const Expr& node) { (VisitHandle(node, visits), ...); });
}

// Whether every node of `e` does.
bool AllNodes(const Expr& e, auto&& holds) {
  bool all = true;
  WalkNodes(e, [&](const Expr& node) { all = all && holds(node); });
  return all;
}

// Rebuilds `e` bottom-up: `rewrite` sees each node, or each of one kind, after its children;
// returning null keeps the node. Subtrees that do not change keep their handle.
Expr RewriteNodes(const Expr& e, const std::function<Expr(const Expr&)>& rewrite);
template <typename Visit>
Expr Rewrite(const Expr& e, Visit&& rewrite) {
  if constexpr (std::is_invocable_v<Visit&, const Expr&>) {
    return RewriteNodes(e, rewrite);
  } else {
    return RewriteNodes(e, [&](const Expr& node) { return VisitKind<Expr>(node->node, rewrite); });
  }
}

// Replaces variables: one of them; or those of a map; or as a function of a name says, where null
// keeps it.
Expr Substitute(const Expr& e, const std::string& name, const Expr& value);
template <typename Replacements>
Expr Substitute(const Expr& e, const Replacements& of) {
  return Rewrite(e, [&](const Var& var) -> Expr {
    if constexpr (LookupMap<Replacements>) {
      return FindOr(of, var.name);
    } else {
      return of(var.name);
    }
  });
}

// Names of the variables in `e`, in order of first appearance.
std::vector<std::string> FreeVars(const Expr& e);
bool Uses(const Expr& e, const std::string& variable);
std::vector<const Load*> Loads(const Expr& e);
// Those that are not inside another load's indices or guard.
std::vector<const Load*> OuterLoads(const Expr& e);

template <typename T>
const T* As(const Expr& e) {
  return e ? std::get_if<T>(&e->node) : nullptr;
}

// Integers of one dtype, or a literal that takes the other's: what IR before its verification may
// lack.
inline bool IntegersAgree(const Expr& a, const Expr& b) {
  return IsInteger(a->dtype) && IsInteger(b->dtype) &&
         (a->dtype == b->dtype || AsInt(a) || AsInt(b));
}

}  // namespace hackc::ir
