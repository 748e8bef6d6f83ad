// SPDX-License-Identifier: MIT
#include "compiler/ir/expr.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/ir/rewrite.h"
#include "compiler/ir/text_lexer.h"
#include "compiler/support/cat.h"
#include "compiler/support/internal_error.h"

namespace hackc::ir {

HACKC_FIELDS(IntLiteral, "int", value, dtype)
HACKC_FIELDS(FloatLiteral, "float", value, dtype)
HACKC_FIELDS(Var, "var", name, dtype)
HACKC_FIELDS(Symbol, "symbol", name)
HACKC_FIELDS(Builtin, "builtin", kind)
HACKC_FIELDS(Unary, "unary", op, a)
HACKC_FIELDS(Binary, "binary", op, a, b)
HACKC_FIELDS(Select, "select", condition, a, b)
HACKC_FIELDS(Cast, "cast", dtype, a)
HACKC_FIELDS(Load, "load", buffer, dtype, indices, guard)
HACKC_FIELDS(Shuffle, "shuffle", kind, value, lane)

namespace {

size_t Mix(size_t seed, size_t value) {
  return (seed ^ (value + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2))) * 0x100000001b3ULL;
}
size_t HashOf(const Expr& e) { return e ? e->hash : 7; }
size_t HashOf(const std::vector<Expr>& list) {
  size_t hash = list.size();
  for (const Expr& e : list) hash = Mix(hash, HashOf(e));
  return hash;
}
template <typename T>
size_t HashOf(const T& value) {
  return std::hash<T>{}(value);
}

Expr Make(ExprVariant node, DType dtype) {
  const size_t start = Mix(node.index(), static_cast<size_t>(dtype));
  auto result = std::make_shared<ExprNode>(ExprNode{std::move(node), dtype, start, 1});
  std::visit(
      [&]<typename T>(const T& n) {
        ForEachField<T>(
            [&](const auto& field) { result->hash = Mix(result->hash, HashOf(n.*field.member)); });
      },
      result->node);
  for (const Expr& child : Children(result)) {
    if (child) result->depth = std::max(result->depth, child->depth + 1);
  }
  return result;
}

// Folds two integer literals; nullopt when the result is not representable or undefined.
std::optional<int64_t> FoldInts(BinaryOp op, int64_t a, int64_t b) {
  int64_t r = 0;
  switch (op) {
    case BinaryOp::kAdd: return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case BinaryOp::kSub: return __builtin_sub_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case BinaryOp::kMul: return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case BinaryOp::kFloorDiv:
      if (b == -1) return FoldInts(BinaryOp::kSub, 0, a);
      return b == 0 ? std::nullopt : std::optional(FloorDivide(a, b));
    case BinaryOp::kMod:
      if (b == -1) return 0;
      return b == 0 ? std::nullopt : std::optional(FloorMod(a, b));
    case BinaryOp::kMin: return std::min(a, b);
    case BinaryOp::kMax: return std::max(a, b);
    case BinaryOp::kLt: return a < b;
    case BinaryOp::kLe: return a <= b;
    case BinaryOp::kEq: return a == b;
    case BinaryOp::kNe: return a != b;
    case BinaryOp::kAnd: return a && b;
    case BinaryOp::kOr: return a || b;
    case BinaryOp::kBitAnd: return a & b;
    case BinaryOp::kBitXor: return a ^ b;
    case BinaryOp::kShl: return b >= 0 && b < 31 ? std::optional(a << b) : std::nullopt;
    case BinaryOp::kShr: return b >= 0 && b < 63 ? std::optional(a >> b) : std::nullopt;
    case BinaryOp::kDiv:
    case BinaryOp::kPow: return std::nullopt;
  }
  return std::nullopt;
}

void PrintTo(const Expr& e, std::string& out);

void Add(std::string& out, const Expr& e) { PrintTo(e, out); }
void Add(std::string& out, const std::vector<Expr>& items) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i) out += ", ";
    PrintTo(items[i], out);
  }
}
void Add(std::string& out, const auto& text) { AppendTo(out, text); }

void PrintTo(const Expr& e, std::string& out) {
  if (!e) return;
  auto add = [&](const auto&... parts) { (Add(out, parts), ...); };
  if (const auto* n = As<IntLiteral>(e)) {
    if (n->dtype == DType::kBool) return add(n->value != 0);
    add(n->value, n->dtype == DType::kI64 ? "l" : "");
  } else if (const auto* n = As<FloatLiteral>(e)) {
    add(PrintFloat(n->value));
    if (n->dtype != DType::kF32) add(":", Name(n->dtype));
  } else if (const auto* n = As<Var>(e)) {
    add("%", n->name);
  } else if (const auto* n = As<Symbol>(e)) {
    add(n->name);
  } else if (const auto* n = As<Builtin>(e)) {
    add(Name(n->kind));
  } else if (const auto* n = As<Unary>(e)) {
    add(Name(n->op), "(", n->a, ")");
  } else if (const auto* n = As<Binary>(e)) {
    if (n->op == BinaryOp::kMin || n->op == BinaryOp::kMax || n->op == BinaryOp::kPow) {
      add(Name(n->op), "(", n->a, ", ", n->b, ")");
    } else {
      add("(", n->a, " ", Name(n->op), " ", n->b, ")");
    }
  } else if (const auto* n = As<Select>(e)) {
    add("select(", n->condition, ", ", n->a, ", ", n->b, ")");
  } else if (const auto* n = As<Cast>(e)) {
    add(Name(n->dtype), "(", n->a, ")");
  } else if (const auto* n = As<Load>(e)) {
    add("@", n->buffer, "[", n->indices, n->guard ? " if " : "", n->guard, "]");
  } else if (const auto* n = As<Shuffle>(e)) {
    add(Name(n->kind), "(", n->value, ", ", n->lane, ")");
  }
}

}  // namespace

int64_t FloorDivide(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}
int64_t FloorMod(int64_t a, int64_t b) {
  const int64_t rest = a % b;
  return rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest;
}

bool IsComparison(BinaryOp op) {
  return op == BinaryOp::kLt || op == BinaryOp::kLe || op == BinaryOp::kEq || op == BinaryOp::kNe;
}

Expr IntLit(int64_t value, DType dtype) { return Make(IntLiteral{value, dtype}, dtype); }
Expr BoolLit(bool value) { return IntLit(value, DType::kBool); }
Expr FloatLit(double value, DType dtype) { return Make(FloatLiteral{value, dtype}, dtype); }
Expr MakeVar(std::string name, DType dtype) { return Make(Var{std::move(name), dtype}, dtype); }
Expr Axis(std::string name) { return MakeVar(std::move(name), DType::kI32); }
Expr MakeSymbol(std::string name) { return Make(Symbol{std::move(name)}, DType::kI32); }
Expr MakeBuiltin(BuiltinKind kind) { return Make(Builtin{kind}, DType::kI32); }

Expr MakeUnary(UnaryOp op, const Expr& a) {
  HACKC_CHECK(a != nullptr) << Name(op);
  if (op == UnaryOp::kNot) {
    HACKC_CHECK(a->dtype == DType::kBool) << Print(a);
    if (auto value = AsInt(a)) return BoolLit(!*value);
  } else if (auto value = AsInt(a); value && op == UnaryOp::kNeg) {
    if (auto negated = FoldInts(BinaryOp::kSub, 0, *value)) return IntLit(*negated, a->dtype);
  }
  return Make(Unary{op, a}, a->dtype);
}

Expr MakeBinary(BinaryOp op, Expr a, Expr b) {
  HACKC_CHECK(a && b) << Name(op);
  auto va = AsInt(a), vb = AsInt(b);
  if (a->dtype != b->dtype) {  // integer literals adapt to the other side
    if (va && !IsFloat(b->dtype) && b->dtype != DType::kBool) a = IntLit(*va, b->dtype);
    if (vb && !IsFloat(a->dtype) && a->dtype != DType::kBool) b = IntLit(*vb, a->dtype);
  }
  HACKC_CHECK(a->dtype == b->dtype) << Print(a) << " " << Name(op) << " " << Print(b) << ": "
                                    << Name(a->dtype) << " and " << Name(b->dtype);
  DType dtype = IsComparison(op) ? DType::kBool : a->dtype;
  if (va && vb) {
    if (auto folded = FoldInts(op, *va, *vb)) return IntLit(*folded, dtype);
  }
  if (!IsFloat(a->dtype)) {
    if (op == BinaryOp::kAdd && va == 0) return b;
    if ((op == BinaryOp::kAdd || op == BinaryOp::kSub) && vb == 0) return a;
    if (op == BinaryOp::kMul && (va == 0 || vb == 1)) return a;
    if (op == BinaryOp::kMul && (vb == 0 || va == 1)) return b;
    if (op == BinaryOp::kFloorDiv && (va == 0 || vb == 1)) return a;
    if (op == BinaryOp::kMod && vb == 1) return IntLit(0, a->dtype);
    const bool logic = op == BinaryOp::kAnd || op == BinaryOp::kOr;
    const bool decisive = op == BinaryOp::kOr;  // the operand that decides alone
    if (logic && va) return (*va != 0) == decisive ? a : b;
    if (logic && vb) return (*vb != 0) == decisive ? b : a;
  }
  return Make(Binary{op, std::move(a), std::move(b)}, dtype);
}

Expr MakeSelect(Expr condition, Expr a, Expr b) {
  HACKC_CHECK(condition && a && b && condition->dtype == DType::kBool && a->dtype == b->dtype)
      << Print(condition) << ", " << Print(a) << ", " << Print(b);
  if (auto value = AsInt(condition)) return *value ? a : b;
  DType dtype = a->dtype;
  return Make(Select{std::move(condition), std::move(a), std::move(b)}, dtype);
}

Expr MakeCast(DType dtype, Expr a) {
  HACKC_CHECK(a != nullptr);
  if (a->dtype == dtype) return a;
  if (auto value = AsInt(a); value && !IsFloat(dtype) && dtype != DType::kBool)
    return IntLit(*value, dtype);
  return Make(Cast{dtype, std::move(a)}, dtype);
}

Expr MakeLoad(std::string buffer, DType dtype, std::vector<Expr> indices, Expr guard) {
  for (const Expr& index : indices) HACKC_CHECK(index != nullptr) << buffer;
  if (guard && AsInt(guard) == 1) guard = nullptr;
  return Make(Load{std::move(buffer), dtype, std::move(indices), std::move(guard)}, dtype);
}

Expr MakeShuffle(ShuffleKind kind, Expr value, Expr lane) {
  DType dtype = value->dtype;
  return Make(Shuffle{kind, std::move(value), std::move(lane)}, dtype);
}

Expr operator+(const Expr& a, const Expr& b) { return MakeBinary(BinaryOp::kAdd, a, b); }
Expr operator-(const Expr& a, const Expr& b) { return MakeBinary(BinaryOp::kSub, a, b); }
Expr operator*(const Expr& a, const Expr& b) { return MakeBinary(BinaryOp::kMul, a, b); }
Expr operator+(const Expr& a, int64_t b) { return a + IntLit(b, a->dtype); }
Expr operator-(const Expr& a, int64_t b) { return a - IntLit(b, a->dtype); }
Expr operator*(const Expr& a, int64_t b) { return a * IntLit(b, a->dtype); }
Expr FloorDiv(const Expr& a, const Expr& b) { return MakeBinary(BinaryOp::kFloorDiv, a, b); }
Expr FloorDiv(const Expr& a, int64_t b) { return FloorDiv(a, IntLit(b, a->dtype)); }
Expr CeilDiv(const Expr& a, int64_t b) { return FloorDiv(a + (b - 1), b); }
Expr Mod(const Expr& a, const Expr& b) { return MakeBinary(BinaryOp::kMod, a, b); }
Expr Mod(const Expr& a, int64_t b) { return Mod(a, IntLit(b, a->dtype)); }
Expr Min(const Expr& a, const Expr& b) {
  return Equal(a, b) ? a : MakeBinary(BinaryOp::kMin, a, b);
}
Expr Max(const Expr& a, const Expr& b) {
  return Equal(a, b) ? a : MakeBinary(BinaryOp::kMax, a, b);
}
Expr Lt(const Expr& a, const Expr& b) { return MakeBinary(BinaryOp::kLt, a, b); }
Expr Le(const Expr& a, const Expr& b) { return MakeBinary(BinaryOp::kLe, a, b); }
Expr And(const Expr& a, const Expr& b) {
  if (!a) return b && AsInt(b) == 1 ? nullptr : b;
  if (!b) return AsInt(a) == 1 ? nullptr : a;
  if (Equal(a, b)) return a;
  return MakeBinary(BinaryOp::kAnd, a, b);
}

bool Equal(const Expr& a, const Expr& b) {
  if (a == b) return true;
  return a && b && a->hash == b->hash && a->dtype == b->dtype && SameValue(a->node, b->node);
}

std::optional<int64_t> AsInt(const Expr& e) {
  const IntLiteral* literal = As<IntLiteral>(e);
  return literal ? std::optional(literal->value) : std::nullopt;
}

std::string Print(const Expr& e) {
  std::string out;
  PrintTo(e, out);
  return out;
}

std::vector<Expr> Children(const Expr& e) {
  std::vector<Expr> children;
  const auto add = [&](const Expr& child) { children.push_back(child); };
  std::visit([&](const auto& n) { ForEachExpr(n, add); }, e->node);
  return children;
}

void WalkNodes(const Expr& e, const std::function<void(const Expr&)>& visit) {
  if (!e) return;
  visit(e);
  for (const Expr& child : Children(e)) WalkNodes(child, visit);
}

namespace {

Expr Remake(const Unary& n) { return MakeUnary(n.op, n.a); }
Expr Remake(const Binary& n) { return MakeBinary(n.op, n.a, n.b); }
Expr Remake(const Select& n) { return MakeSelect(n.condition, n.a, n.b); }
Expr Remake(const Cast& n) { return MakeCast(n.dtype, n.a); }
Expr Remake(const Load& n) { return MakeLoad(n.buffer, n.dtype, n.indices, n.guard); }
Expr Remake(const Shuffle& n) { return MakeShuffle(n.kind, n.value, n.lane); }

// Shared subtrees are rewritten once: `memo` is keyed by handle.
Expr RewriteMemo(const Expr& e, const std::function<Expr(const Expr&)>& rewrite,
                 std::unordered_map<const ExprNode*, Expr>& memo) {
  if (!e) return e;
  if (auto it = memo.find(e.get()); it != memo.end()) return it->second;
  std::vector<Expr> parts;
  bool changed = false;
  Expr rebuilt = std::visit(
      [&]<typename T>(const T& n) {
        if constexpr (requires { Remake(n); }) {
          T copy = n;
          ForEachExpr(copy, [&](Expr& child) {
            parts.push_back(RewriteMemo(child, rewrite, memo));
            changed |= parts.back() != child;
            child = parts.back();
          });
          if (changed) return Remake(copy);
        }
        return e;
      },
      e->node);
  // Folding may leave one of the parts (0 * 3 + %i is %i), which `rewrite` has seen: not twice.
  if (absl::c_linear_search(parts, rebuilt)) return memo[e.get()] = rebuilt;
  Expr replaced = rewrite(rebuilt);
  return memo[e.get()] = replaced ? replaced : rebuilt;
}

}  // namespace

Expr RewriteNodes(const Expr& e, const std::function<Expr(const Expr&)>& rewrite) {
  std::unordered_map<const ExprNode*, Expr> memo;
  return RewriteMemo(e, rewrite, memo);
}

Expr Substitute(const Expr& e, const std::string& name, const Expr& value) {
  return Rewrite(e, [&](const Var& var) { return var.name == name ? value : nullptr; });
}

std::vector<std::string> FreeVars(const Expr& e) {
  std::vector<std::string> names;
  Walk(e, [&](const Var& var) {
    if (!absl::c_linear_search(names, var.name)) names.push_back(var.name);
  });
  return names;
}

bool Uses(const Expr& e, const std::string& variable) {
  bool uses = false;
  Walk(e, [&](const Var& var) { uses |= var.name == variable; });
  return uses;
}

std::vector<const Load*> Loads(const Expr& e) {
  std::vector<const Load*> loads;
  Walk(e, [&](const Load& load) { loads.push_back(&load); });
  return loads;
}

std::vector<const Load*> OuterLoads(const Expr& e) {
  std::vector<const Load*> loads;
  if (const Load* load = As<Load>(e)) return {load};
  for (const Expr& child : Children(e)) {
    for (const Load* load : OuterLoads(child)) loads.push_back(load);
  }
  return loads;
}

}  // namespace hackc::ir
