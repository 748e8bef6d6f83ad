// SPDX-License-Identifier: MIT
#include "compiler/ir/expr.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/rewrite.h"
#include "compiler/ir/text_lexer.h"
#include "compiler/support/internal_error.h"

namespace hackc::ir {

std::string_view Name(UnaryOp op) {
  static constexpr std::string_view kNames[] = {"neg",  "exp", "exp2", "log", "sqrt", "rsqrt",
                                                "tanh", "erf", "sin",  "cos", "abs",  "not"};
  return kNames[static_cast<size_t>(op)];
}

std::string_view Name(BinaryOp op) {
  static constexpr std::string_view kNames[] = {"+",   "-",   "*", "/",  "//", "%",  "min",
                                                "max", "pow", "<", "<=", "==", "!=", "&&",
                                                "||",  "&",   "^", "<<", ">>"};
  return kNames[static_cast<size_t>(op)];
}

std::string_view Name(BuiltinKind kind) {
  static constexpr std::string_view kNames[] = {"thread.x", "block.x", "block.y", "block.z"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view Name(ShuffleKind kind) {
  static constexpr std::string_view kNames[] = {"shuffle_xor", "shuffle_index", "shuffle_down"};
  return kNames[static_cast<size_t>(kind)];
}

std::vector<Expr> Children(const Expr& e) {
  return std::visit(
      [](const auto& n) -> std::vector<Expr> {
        using T = std::decay_t<decltype(n)>;
        if constexpr (std::is_same_v<T, Unary> || std::is_same_v<T, Cast>) return {n.a};
        if constexpr (std::is_same_v<T, Binary>) return {n.a, n.b};
        if constexpr (std::is_same_v<T, Select>) return {n.condition, n.a, n.b};
        if constexpr (std::is_same_v<T, Load>) {
          std::vector<Expr> children = n.indices;
          children.push_back(n.guard);
          return children;
        }
        if constexpr (std::is_same_v<T, Shuffle>) return {n.value, n.lane};
        return {};
      },
      e->node);
}

namespace {

size_t Mix(size_t seed, size_t value) {
  return (seed ^ (value + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2))) * 0x100000001b3ULL;
}
size_t HashOf(const Expr& e) { return e ? e->hash : 7; }
size_t HashOf(const std::string& s) { return std::hash<std::string>{}(s); }

Expr Make(ExprVariant node, DType dtype) {
  size_t hash = Mix(node.index(), static_cast<size_t>(dtype));
  std::visit(
      [&](const auto& n) {
        using T = std::decay_t<decltype(n)>;
        if constexpr (std::is_same_v<T, IntLiteral>) hash = Mix(hash, static_cast<size_t>(n.value));
        if constexpr (std::is_same_v<T, FloatLiteral>)
          hash = Mix(hash, std::hash<double>{}(n.value));
        if constexpr (std::is_same_v<T, Var> || std::is_same_v<T, Symbol>)
          hash = Mix(hash, HashOf(n.name));
        if constexpr (std::is_same_v<T, Builtin> || std::is_same_v<T, Shuffle>)
          hash = Mix(hash, static_cast<size_t>(n.kind));
        if constexpr (std::is_same_v<T, Unary> || std::is_same_v<T, Binary>)
          hash = Mix(hash, static_cast<size_t>(n.op));
        if constexpr (std::is_same_v<T, Load>) hash = Mix(hash, HashOf(n.buffer));
      },
      node);
  auto result = std::make_shared<ExprNode>(ExprNode{std::move(node), dtype, hash, 1});
  for (const Expr& child : Children(result)) {
    result->hash = Mix(result->hash, HashOf(child));
    if (child) result->depth = std::max(result->depth, child->depth + 1);
  }
  return result;
}

// b is neither 0 nor -1.
int64_t FloorDivide(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

// Folds two integer literals; nullopt when the result is not representable or undefined.
std::optional<int64_t> FoldInts(BinaryOp op, int64_t a, int64_t b) {
  int64_t r = 0;
  switch (op) {
    case BinaryOp::kAdd:
      return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case BinaryOp::kSub:
      return __builtin_sub_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case BinaryOp::kMul:
      return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case BinaryOp::kFloorDiv:
      if (b == -1) return FoldInts(BinaryOp::kSub, 0, a);
      return b == 0 ? std::nullopt : std::optional(FloorDivide(a, b));
    case BinaryOp::kMod:
      if (b == -1) return 0;
      return b == 0 ? std::nullopt : std::optional(a - b * FloorDivide(a, b));
    case BinaryOp::kMin:
      return std::min(a, b);
    case BinaryOp::kMax:
      return std::max(a, b);
    case BinaryOp::kLt:
      return a < b;
    case BinaryOp::kLe:
      return a <= b;
    case BinaryOp::kEq:
      return a == b;
    case BinaryOp::kNe:
      return a != b;
    case BinaryOp::kAnd:
      return a && b;
    case BinaryOp::kOr:
      return a || b;
    case BinaryOp::kBitAnd:
      return a & b;
    case BinaryOp::kBitXor:
      return a ^ b;
    case BinaryOp::kShl:
      return b >= 0 && b < 31 ? std::optional(a << b) : std::nullopt;
    case BinaryOp::kShr:
      return b >= 0 && b < 63 ? std::optional(a >> b) : std::nullopt;
    case BinaryOp::kDiv:
    case BinaryOp::kPow:
      return std::nullopt;
  }
  return std::nullopt;
}

bool IsComparison(BinaryOp op) {
  return op == BinaryOp::kLt || op == BinaryOp::kLe || op == BinaryOp::kEq || op == BinaryOp::kNe;
}

void PrintTo(const Expr& e, std::string& out) {
  if (!e) return;
  auto list = [&](const std::vector<Expr>& items) {
    for (size_t i = 0; i < items.size(); ++i) {
      if (i) out += ", ";
      PrintTo(items[i], out);
    }
  };
  std::visit(
      [&](const auto& n) {
        using T = std::decay_t<decltype(n)>;
        if constexpr (std::is_same_v<T, IntLiteral>) {
          if (n.dtype == DType::kBool) {
            out += n.value ? "true" : "false";
          } else {
            out += std::to_string(n.value);
            if (n.dtype == DType::kI64) out += "l";
          }
        } else if constexpr (std::is_same_v<T, FloatLiteral>) {
          out += PrintFloat(n.value);
          if (n.dtype != DType::kF32) out += ":" + std::string(Name(n.dtype));
        } else if constexpr (std::is_same_v<T, Var>) {
          out += "%" + n.name;
        } else if constexpr (std::is_same_v<T, Symbol>) {
          out += n.name;
        } else if constexpr (std::is_same_v<T, Builtin>) {
          out += Name(n.kind);
        } else if constexpr (std::is_same_v<T, Unary>) {
          out += Name(n.op);
          out += "(";
          PrintTo(n.a, out);
          out += ")";
        } else if constexpr (std::is_same_v<T, Binary>) {
          bool call = n.op == BinaryOp::kMin || n.op == BinaryOp::kMax || n.op == BinaryOp::kPow;
          if (call) out += Name(n.op);
          out += "(";
          PrintTo(n.a, out);
          if (call) {
            out += ", ";
          } else {
            out += " ";
            out += Name(n.op);
            out += " ";
          }
          PrintTo(n.b, out);
          out += ")";
        } else if constexpr (std::is_same_v<T, Select>) {
          out += "select(";
          list({n.condition, n.a, n.b});
          out += ")";
        } else if constexpr (std::is_same_v<T, Cast>) {
          out += Name(n.dtype);
          out += "(";
          PrintTo(n.a, out);
          out += ")";
        } else if constexpr (std::is_same_v<T, Load>) {
          out += "@" + n.buffer + "[";
          list(n.indices);
          if (n.guard) {
            out += " if ";
            PrintTo(n.guard, out);
          }
          out += "]";
        } else if constexpr (std::is_same_v<T, Shuffle>) {
          out += Name(n.kind);
          out += "(";
          list({n.value, n.lane});
          out += ")";
        }
      },
      e->node);
}

}  // namespace

Expr IntLit(int64_t value, DType dtype) { return Make(IntLiteral{value, dtype}, dtype); }
Expr BoolLit(bool value) { return IntLit(value, DType::kBool); }
Expr FloatLit(double value, DType dtype) { return Make(FloatLiteral{value, dtype}, dtype); }
Expr MakeVar(std::string name, DType dtype) { return Make(Var{std::move(name), dtype}, dtype); }
Expr Axis(std::string name) { return MakeVar(std::move(name), DType::kI32); }
Expr MakeSymbol(std::string name) { return Make(Symbol{std::move(name)}, DType::kI32); }
Expr MakeBuiltin(BuiltinKind kind) { return Make(Builtin{kind}, DType::kI32); }

Expr MakeUnary(UnaryOp op, Expr a) {
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
    switch (op) {
      case BinaryOp::kAdd:
        if (va == 0) return b;
        if (vb == 0) return a;
        break;
      case BinaryOp::kSub:
        if (vb == 0) return a;
        break;
      case BinaryOp::kMul:
        if (va == 1) return b;
        if (vb == 1) return a;
        if (va == 0) return a;
        if (vb == 0) return b;
        break;
      case BinaryOp::kFloorDiv:
        if (vb == 1) return a;
        if (va == 0) return a;
        break;
      case BinaryOp::kMod:
        if (vb == 1) return IntLit(0, a->dtype);
        break;
      case BinaryOp::kAnd:
        if (va) return *va ? b : a;
        if (vb) return *vb ? a : b;
        break;
      case BinaryOp::kOr:
        if (va) return *va ? a : b;
        if (vb) return *vb ? b : a;
        break;
      default:
        break;
    }
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
  if (!a || !b || a->hash != b->hash || a->dtype != b->dtype || a->node.index() != b->node.index())
    return false;
  bool same = std::visit(
      [&](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        const T& y = std::get<T>(b->node);
        if constexpr (std::is_same_v<T, IntLiteral>) return x.value == y.value;
        if constexpr (std::is_same_v<T, FloatLiteral>)
          return x.value == y.value && std::signbit(x.value) == std::signbit(y.value);
        if constexpr (std::is_same_v<T, Var> || std::is_same_v<T, Symbol>) return x.name == y.name;
        if constexpr (std::is_same_v<T, Builtin> || std::is_same_v<T, Shuffle>)
          return x.kind == y.kind;
        if constexpr (std::is_same_v<T, Unary> || std::is_same_v<T, Binary>) return x.op == y.op;
        if constexpr (std::is_same_v<T, Load>) return x.buffer == y.buffer;
        return true;
      },
      a->node);
  if (!same) return false;
  std::vector<Expr> ca = Children(a), cb = Children(b);
  return ca.size() == cb.size() && std::equal(ca.begin(), ca.end(), cb.begin(), ExprEqual());
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

void Walk(const Expr& e, const std::function<void(const Expr&)>& visit) {
  if (!e) return;
  visit(e);
  for (const Expr& child : Children(e)) Walk(child, visit);
}

namespace {

// Shared subtrees are rewritten once: `memo` is keyed by handle.
Expr RewriteMemo(const Expr& e, const std::function<Expr(const Expr&)>& rewrite,
                 std::unordered_map<const ExprNode*, Expr>& memo) {
  if (!e) return e;
  if (auto it = memo.find(e.get()); it != memo.end()) return it->second;
  std::vector<Expr> parts;
  auto recurse = [&](const Expr& child) {
    return parts.emplace_back(RewriteMemo(child, rewrite, memo));
  };
  Expr rebuilt = std::visit(
      [&](const auto& n) -> Expr {
        using T = std::decay_t<decltype(n)>;
        if constexpr (std::is_same_v<T, Unary>) {
          Expr a = recurse(n.a);
          return a == n.a ? e : MakeUnary(n.op, a);
        } else if constexpr (std::is_same_v<T, Cast>) {
          Expr a = recurse(n.a);
          return a == n.a ? e : MakeCast(n.dtype, a);
        } else if constexpr (std::is_same_v<T, Binary>) {
          Expr a = recurse(n.a), b = recurse(n.b);
          return a == n.a && b == n.b ? e : MakeBinary(n.op, a, b);
        } else if constexpr (std::is_same_v<T, Select>) {
          Expr c = recurse(n.condition), a = recurse(n.a), b = recurse(n.b);
          return c == n.condition && a == n.a && b == n.b ? e : MakeSelect(c, a, b);
        } else if constexpr (std::is_same_v<T, Load>) {
          std::vector<Expr> indices;
          bool changed = false;
          for (const Expr& index : n.indices) {
            indices.push_back(recurse(index));
            changed |= indices.back() != index;
          }
          Expr guard = recurse(n.guard);
          changed |= guard != n.guard;
          return changed ? MakeLoad(n.buffer, n.dtype, std::move(indices), guard) : e;
        } else if constexpr (std::is_same_v<T, Shuffle>) {
          Expr value = recurse(n.value), lane = recurse(n.lane);
          return value == n.value && lane == n.lane ? e : MakeShuffle(n.kind, value, lane);
        } else {
          return e;
        }
      },
      e->node);
  // Folding may leave one of the parts (0 * 3 + %i is %i), which `rewrite` has seen: not twice.
  for (const Expr& part : parts) {
    if (part == rebuilt) return memo[e.get()] = rebuilt;
  }
  Expr replaced = rewrite(rebuilt);
  return memo[e.get()] = replaced ? replaced : rebuilt;
}

}  // namespace

Expr Rewrite(const Expr& e, const std::function<Expr(const Expr&)>& rewrite) {
  std::unordered_map<const ExprNode*, Expr> memo;
  return RewriteMemo(e, rewrite, memo);
}

Expr Substitute(const Expr& e, const std::function<Expr(const std::string&)>& replacement) {
  return Rewrite(e, [&](const Expr& node) -> Expr {
    const Var* var = As<Var>(node);
    return var ? replacement(var->name) : nullptr;
  });
}

std::vector<std::string> FreeVars(const Expr& e) {
  std::vector<std::string> names;
  std::unordered_set<std::string> seen;
  Walk(e, [&](const Expr& node) {
    if (const Var* var = As<Var>(node); var && seen.insert(var->name).second)
      names.push_back(var->name);
  });
  return names;
}

std::vector<const Load*> Loads(const Expr& e) {
  std::vector<const Load*> loads;
  Walk(e, [&](const Expr& node) {
    if (const Load* load = As<Load>(node)) loads.push_back(load);
  });
  return loads;
}

}  // namespace hackc::ir
