// SPDX-License-Identifier: MIT
#include "compiler/ir/stmt_verify.h"

#include "compiler/ir/expr_parser.h"
#include "compiler/ir/linear.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/ir/text_lexer.h"
#include "compiler/support/internal_error.h"
#include "compiler/support/saturate.h"

namespace hackc::ir {
namespace {

constexpr size_t kMaxErrors = 50;
constexpr int64_t kMaxElements = 1 << 24;  // of an array's dimension, of all of a state

}  // namespace

bool OverSymbols(const Expr& e) {
  return AllNodes(
      e, [](const Expr& node) { return IsA<IntLiteral, Symbol, Binary, Unary, Select>(node); });
}

StmtVerifier::StmtVerifier(Level level, const Function& fn)
    : fn_(fn), level_(std::move(level)), prover_(fn.symbols) {}

void StmtVerifier::Report(const Rule& rule, std::string_view message) {
  if (errors_.size() >= kMaxErrors) return;
  std::string path = Cat(level_.name, " ", fn_.name);
  for (const Stmt& s : nest_) path += " / " + PathName(*s);
  errors_.push_back(ErrorText(nest_.empty() ? line_ : nest_.back()->line, path, rule, message));
}

const NameInfo* StmtVerifier::Find(const std::string& name) const {
  return FindOrNull(names_, name);
}

void StmtVerifier::DeclareName(const std::string& name, NameInfo info) {
  if (!IsName(name)) Error("name", "\"", name, "\" is not a name");
  if (!defined_.insert(name).second) Error("unique", "`", name, "` is defined twice");
  names_[name] = std::move(info);
  scope_.push_back(name);
}

std::vector<std::string> StmtVerifier::Run() {
  if (!IsName(fn_.name)) Error("name", "\"", fn_.name, "\" is not a name");
  for (const SymbolDecl& symbol : fn_.symbols) {
    line_ = symbol.line;
    if (!CanBeSymbol(symbol.name)) Error("name", "\"", symbol.name, "\" cannot be a symbol");
    if (!symbols_.insert(symbol.name).second)
      Error("unique", "symbol ", symbol.name, " is defined twice");
    if (symbol.min < 0 || symbol.min > symbol.max || symbol.max > INT32_MAX) {
      Error("symbol", "symbol ", symbol.name, " in ", symbol.min, "..", symbol.max,
            ", expected 0 <= min <= max < 2^31");
    }
  }
  for (const BufferDecl& buffer : fn_.buffers) {
    line_ = buffer.line;
    if (buffer.shape.size() > kMaxRank)
      Error("shape", "@", buffer.name, " has more than ", kMaxRank, " dims");
    for (const Expr& extent : buffer.shape) {
      Expression(extent, Cat("extent of @", buffer.name), DType::kI32);
      if (!extent || !OverSymbols(extent) || prover_.BoundsOf(extent).min < 1) {
        Error("shape", "@", buffer.name, ": extent `", Print(extent),
              "` is not positive over symbols");
      }
    }
    DeclareName(buffer.name, {NameInfo::Kind::kGlobal, buffer.dtype, buffer.shape, buffer.access});
  }
  line_ = fn_.line;
  try {
    Declare();
    VerifyBlock(fn_.body);
  } catch (const InternalError&) {
    // Makers of expressions refuse what does not type; where that was reported, no more can be
    // said.
    if (errors_.empty()) throw;
  }
  return std::move(errors_);
}

void StmtVerifier::VerifyBlock(const Block& block) {
  const size_t mark = scope_.size();
  for (const Stmt& s : block) {
    if (!s) {
      Error("kind", "an absent statement");
      continue;
    }
    nest_.push_back(s);
    if (nest_.size() > kMaxBlockDepth) {
      Error("depth", "statements nest more than ", kMaxBlockDepth, " levels");
    } else {
      VerifyStmt(s);
    }
    nest_.pop_back();
  }
  LeaveScope(mark);
}

void StmtVerifier::LeaveScope(size_t mark) {
  for (; scope_.size() > mark; scope_.pop_back()) names_.erase(scope_.back());
}

void StmtVerifier::VerifyStmt(const Stmt& s) {
  if (!level_.holds(s)) {
    Error("kind", "a ", level_.name, " function holds no `",
          std::visit([](const auto& n) { return NodeName<std::decay_t<decltype(n)>>(); }, s->node),
          "`");
    return;
  }
  const size_t facts = prover_.Enter();
  if (const For* loop = As<For>(s)) {
    Expression(loop->extent, "extent", DType::kI32);
    if (!ReadsConstants(loop->extent))
      Error("extent", "extent `", Print(loop->extent), "` reads memory that is not `read`");
    if (!absl::c_linear_search(level_.loops, loop->kind))
      Error("kind", "a ", level_.name, " function holds no ", Name(loop->kind), " loop");
    DeclareName(loop->axis, {NameInfo::Kind::kAxis, DType::kI32});
    if (loop->extent) prover_.SetAxis(loop->axis, loop->extent);
  } else if (const Let* let = As<Let>(s)) {
    Expression(let->value, "value", std::nullopt);
  } else if (const Accumulator* acc = As<Accumulator>(s)) {
    NameInfo info{.extents = acc->extents, .monoid = acc->monoid};
    info.kind = acc->extents.empty() ? NameInfo::Kind::kScalarState : NameInfo::Kind::kState;
    int64_t elements = 1;
    for (const Expr& extent : acc->extents) {
      const int64_t value = AsInt(extent).value_or(0);
      if (value < 1) Error("shape", "extent `", Print(extent), "` is not a positive constant");
      elements = SaturatedProduct(elements, value);
    }
    if (elements > kMaxElements) Error("shape", "a state of more than 2^24 elements");
    DeclareName(acc->name, std::move(info));
  } else if (const Alloc* alloc = As<Alloc>(s)) {
    NameInfo info{.kind = NameInfo::Kind::kAlloc, .dtype = alloc->dtype, .alloc = alloc};
    if (alloc->extents.size() > kMaxRank) Error("shape", "more than ", kMaxRank, " dims");
    for (int64_t extent : alloc->extents) {
      if (extent < 1 || extent > kMaxElements)
        Error("shape", "extent ", extent, ", expected 1 to 2^24");
      info.extents.push_back(IntLit(extent));
    }
    DeclareName(alloc->name, std::move(info));
  } else if (const Accumulate* update = As<Accumulate>(s)) {
    VerifyUpdate(*update);
  } else if (const Store* store = As<Store>(s)) {
    VerifyWrite(*store);
  } else if (const If* branch = As<If>(s)) {
    Condition(branch->condition);
    for (const Expr& part : Flatten(branch->condition, BinaryOp::kAnd)) {
      if (ReadsConstants(part)) prover_.Assume(part);  // the body may change what others load
    }
  }
  Check(s);
  VerifyBlock(ChildBlock(s));
  if (As<For>(s)) LeaveScope(scope_.size() - 1);  // its axis goes with its body
  prover_.Leave(facts);
  After(s);
  if (const Let* let = As<Let>(s); let && let->value) {
    DeclareName(let->name, {NameInfo::Kind::kLet, let->value->dtype});
    if (IsInteger(let->value->dtype) && ReadsConstants(let->value))
      prover_.SetLet(let->name, let->value);
  }
}

void StmtVerifier::VerifyUpdate(const Accumulate& update) {
  const NameInfo* state = Find(update.name);
  if (!state || !state->IsState())
    return Error("defined", "%", update.name, " is not an accumulator here");
  if (static_cast<int>(update.operands.size()) != OperandCount(state->monoid)) {
    Error("operands", Name(state->monoid), " takes ", OperandCount(state->monoid),
          " operands, got ", update.operands.size());
  }
  Condition(update.guard);
  prover_.Assume(update.guard);
  CheckAccess(update.name, update.indices, 1);
  for (const Expr& operand : update.operands) Expression(operand, "operand", DType::kF32);
}

void StmtVerifier::VerifyWrite(const Store& store) {
  Condition(store.guard);
  prover_.Assume(store.guard);
  const NameInfo* target = Find(store.buffer);
  if (!target || !target->IsState() || !level_.states_by_load)
    target = Memory(store.buffer, false, true);
  CheckAccess(store.buffer, store.indices, 1);
  Expression(store.value, "value", target ? std::optional(target->dtype) : std::nullopt);
}

const NameInfo* StmtVerifier::Memory(const std::string& name, bool read, bool write) {
  const NameInfo* info = Find(name);
  if (!info || !info->IsBuffer()) {
    Error("defined", "@", name, " is not a buffer here");
    return nullptr;
  }
  if ((read || write) && info->IsIn(MemorySpace::kMbarrier))
    Error("access", "@", name, " holds mbarriers, which only their own statements touch");
  if (read && info->access == Access::kWrite)
    Error("access", "@", name, " is read but declared `write`");
  if (write && info->access == Access::kRead)
    Error("access", "@", name, " is written but declared `read`");
  return info;
}

bool StmtVerifier::ReadsConstants(const Expr& e) const {
  if (!e) return true;
  return absl::c_all_of(Loads(e), [&](const Load* load) {
    const NameInfo* info = Find(load->buffer);
    return info && info->kind == NameInfo::Kind::kGlobal && info->access == Access::kRead;
  });
}

void StmtVerifier::CheckAccess(const std::string& name, const std::vector<Expr>& indices,
                               int64_t width) {
  for (const Expr& index : indices) {
    Expression(index, "index", std::nullopt);
    if (!index || !IsInteger(index->dtype))
      return Error("dtype", "index `", Print(index), "` is not an integer");
  }
  const NameInfo* info = Find(name);
  if (!info) return;
  if (indices.size() != info->extents.size()) {
    return Error("rank", "@", name, ": index rank ", indices.size(), ", buffer rank ",
                 info->extents.size());
  }
  if (!level_.bounds) return;
  for (size_t i = 0; i < indices.size(); ++i) {
    const Expr last = i + 1 == indices.size() ? indices[i] + (width - 1) : indices[i];
    if (!prover_.NonNegative(indices[i]) || !prover_.Less(last, info->extents[i])) {
      Error("bounds", "@", name, ": index `", Print(last), "` of dimension ", i,
            " is not provably within 0..", Print(info->extents[i]));
    }
  }
}

void StmtVerifier::Condition(const Expr& e) {
  if (e) Expression(e, "condition", DType::kBool);
}

void StmtVerifier::Expression(const Expr& e, std::string_view what, std::optional<DType> dtype) {
  if (!e) return Error("dtype", "the ", what, " is absent");
  if (e->depth > kMaxExprDepth)
    return Error("depth", "the ", what, " nests more than ", kMaxExprDepth, " levels");
  if (dtype && e->dtype != *dtype) {
    Error("dtype", "the ", what, " `", Print(e).substr(0, 200), "` is ", Name(e->dtype),
          ", expected ", Name(*dtype));
  }
  CheckExpr(e);
  Visit(e);
}

// Floats are computed in float32 and float64, sums, products and literals of i32 in 32 bits.
void StmtVerifier::VerifyArithmetic(const Expr& e) {
  const Binary* n = As<Binary>(e);
  const DType operand = n || As<Unary>(e) ? Children(e)[0]->dtype : DType::kI32;
  if (IsFloat(operand) && SizeOf(operand) == 2)  // bf16 and f16 are for storage only
    return Error("dtype", "`", Print(e), "` computes in ", Name(operand));
  if (n && IsInteger(e->dtype)) {
    const Range by = prover_.BoundsOf(n->b);
    const bool shifts = n->op == BinaryOp::kShl || n->op == BinaryOp::kShr;
    const bool divides = n->op == BinaryOp::kFloorDiv || n->op == BinaryOp::kMod;
    if (shifts && (by.min < 0 || by.max >= 8 * SizeOf(e->dtype)))
      Error("overflow", "`", Print(e), "` may shift by ", by.min < 0 ? by.min : by.max, " bits");
    if (divides && by.min <= 0 && by.max >= 0 && !prover_.Less(IntLit(0), n->b))
      Error("overflow", "`", Print(e), "` may divide by 0");
  }
  if (e->dtype != DType::kI32 || !(As<IntLiteral>(e) || IsSum(e))) return;
  const Range range = prover_.BoundsOf(e);
  if (range.min < INT32_MIN || range.max > INT32_MAX) {
    Error("overflow", "`", Print(e), "` may be ", range.min < INT32_MIN ? range.min : range.max,
          ", which 32 bits do not hold");
  }
}

// Visits with the facts that guards and conditions give on the way.
void StmtVerifier::Visit(const Expr& e) {
  const size_t mark = prover_.Enter(), errors = errors_.size();
  if (const Load* load = As<Load>(e)) {
    VerifyLoad(*load, e->dtype);
  } else if (const Symbol* symbol = As<Symbol>(e)) {
    if (!symbols_.count(symbol->name)) {
      Error("defined", "symbol ", symbol->name, " is not declared");
    }
  } else if (const Var* var = As<Var>(e)) {
    VerifyVar(*var);
  } else if ((As<Builtin>(e) || As<Shuffle>(e)) && !level_.threads) {
    Error("kind", "`", Print(e), "` below Kernel level only");
  } else if (const Select* select = As<Select>(e)) {
    Visit(select->condition);
    for (bool taken : {true, false}) {
      prover_.Assume(select->condition, taken);
      Visit(taken ? select->a : select->b);
      prover_.Leave(mark);
    }
  } else {
    const Binary* lazy = As<Binary>(e);
    for (const Expr& child : Children(e)) {
      Visit(child);
      if (lazy && lazy->op == BinaryOp::kAnd) prover_.Assume(lazy->a, true);
      if (lazy && lazy->op == BinaryOp::kOr) prover_.Assume(lazy->a, false);
    }
  }
  if (errors_.size() == errors) VerifyArithmetic(e);
  prover_.Leave(mark);
}

void StmtVerifier::VerifyVar(const Var& var) {
  const NameInfo* info = Find(var.name);
  if (!info || info->IsBuffer() || info->kind == NameInfo::Kind::kState) {
    return Error("defined", "%", var.name, " is not a value here");
  }
  if (info->dtype != var.dtype) {
    Error("dtype", "%", var.name, " is ", Name(info->dtype), ", used as ", Name(var.dtype));
  }
}

void StmtVerifier::VerifyLoad(const Load& load, DType dtype) {
  const NameInfo* info = Find(load.buffer);
  const bool state =
      info && (info->kind == NameInfo::Kind::kState ||
               (info->kind == NameInfo::Kind::kScalarState && level_.states_by_load));
  if (!state) info = Memory(load.buffer, true, false);
  if (!info) return;
  if (info->dtype != dtype) {
    Error("dtype", "@", load.buffer, " is ", Name(info->dtype), ", loaded as ", Name(dtype));
  }
  Condition(load.guard);
  prover_.Assume(load.guard);
  CheckAccess(load.buffer, load.indices, 1);
}

}  // namespace hackc::ir
