// SPDX-License-Identifier: MIT
#include <unordered_map>

#include "compiler/ir/field_text.h"
#include "compiler/ir/stmt_text.h"

namespace hackc::ir {
namespace {

// Dtypes of names, with scopes: Leave(mark) forgets what came after Enter().
class NameTable {
 public:
  size_t Enter() const { return order_.size(); }
  void Leave(size_t mark) {
    while (order_.size() > mark) {
      types_[order_.back()].pop_back();
      order_.pop_back();
    }
  }
  void Add(const std::string& name, DType dtype) {
    types_[name].push_back(dtype);
    order_.push_back(name);
  }
  std::optional<DType> Find(std::string_view name) const {
    auto it = types_.find(std::string(name));
    if (it == types_.end() || it->second.empty()) return std::nullopt;
    return it->second.back();
  }

 private:
  std::unordered_map<std::string, std::vector<DType>> types_;
  std::vector<std::string> order_;
};

class FunctionParser {
 public:
  explicit FunctionParser(std::string_view text) : lexer_(text) {
    scope_.variable = [this](std::string_view name) { return variables_.Find(name); };
    scope_.buffer = [this](std::string_view name) { return buffers_.Find(name); };
    scope_.symbol = [this](std::string_view name) { return symbols_.Find(name).has_value(); };
  }

  // `decision` reads what the level adds between the declarations and the body.
  template <typename Decision>
  absl::StatusOr<Function> Parse(std::string_view level, Decision&& decision) {
    Function fn;
    HACKC_RETURN_IF_ERROR(lexer_.ExpectHeader(level, 1));
    HACKC_RETURN_IF_ERROR(lexer_.Expect("fn"));
    HACKC_ASSIGN_OR_RETURN(fn.name, lexer_.Identifier("the function's name"));
    HACKC_ASSIGN_OR_RETURN(fn.computes, lexer_.String("a string that says what it computes"));
    HACKC_RETURN_IF_ERROR(lexer_.Expect("{"));
    while (lexer_.Accept("symbol")) {
      HACKC_ASSIGN_OR_RETURN(SymbolDecl symbol, ParseSymbol(lexer_));
      symbols_.Add(symbol.name, DType::kI32);
      fn.symbols.push_back(std::move(symbol));
    }
    while (lexer_.Is("read") || lexer_.Is("write") || lexer_.Is("readwrite")) {
      HACKC_ASSIGN_OR_RETURN(BufferDecl buffer, ParseBuffer());
      buffers_.Add(buffer.name, buffer.dtype);
      fn.buffers.push_back(std::move(buffer));
    }
    fn.line = {lexer_.Peek().line};
    HACKC_RETURN_IF_ERROR(decision(lexer_, scope_));
    HACKC_ASSIGN_OR_RETURN(fn.body, ParseBody());
    HACKC_RETURN_IF_ERROR(lexer_.ExpectEnd());
    return fn;
  }

 private:
  absl::StatusOr<BufferDecl> ParseBuffer() {
    BufferDecl buffer{.line = {lexer_.Peek().line}};
    HACKC_ASSIGN_OR_RETURN(buffer.access, ParseEnum<Access>(lexer_));
    HACKC_ASSIGN_OR_RETURN(buffer.name, lexer_.AtName("a @buffer"));
    HACKC_RETURN_IF_ERROR(lexer_.Expect(":"));
    HACKC_ASSIGN_OR_RETURN(buffer.dtype, ParseDType(lexer_));
    HACKC_RETURN_IF_ERROR(ParseValue(lexer_, scope_, buffer.shape));
    return buffer;
  }

  // Statements up to and with the closing brace.
  absl::StatusOr<Block> ParseBody() {
    if (++depth_ > kMaxBlockDepth) {
      return lexer_.Error("statements nested more than ", kMaxBlockDepth, " deep");
    }
    size_t variables = variables_.Enter(), buffers = buffers_.Enter();
    Block block;
    while (!lexer_.Accept("}")) {
      const SourceLine line{lexer_.Peek().line};
      HACKC_ASSIGN_OR_RETURN(Stmt s, ParseStmt());
      block.push_back(std::make_shared<const StmtNode>(StmtNode{s->node, line}));
    }
    variables_.Leave(variables);
    buffers_.Leave(buffers);
    --depth_;
    return block;
  }

  absl::StatusOr<Stmt> ParseStmt() {
    if (lexer_.Peek().kind == TokenKind::kPercentName) return ParseAccumulate();
    if (lexer_.Peek().kind == TokenKind::kAtName) return ParseStore();
    if (lexer_.Accept("for")) return ParseFor();
    if (lexer_.Accept("let")) return ParseLet();
    if (lexer_.Accept("acc")) return ParseAccumulator();
    if (lexer_.Accept("alloc")) return ParseAlloc();
    if (lexer_.Accept("if")) return ParseIf();
    if (lexer_.Accept("role")) return ParseRole();
    return ParseGeneric(static_cast<const StmtVariant*>(nullptr));
  }

  // Every kind that has no form of its own: its word, then its fields.
  template <typename... Nodes>
  absl::StatusOr<Stmt> ParseGeneric(const std::variant<Nodes...>*) {
    std::optional<absl::StatusOr<Stmt>> found;
    auto attempt = [&]<typename T>(const T*) {
      // Statements with a body never get here: their words are taken above.
      if constexpr (!std::is_same_v<T, For> && !std::is_same_v<T, If> && !std::is_same_v<T, Role>) {
        if (found || !lexer_.Accept(NodeName<T>())) return;
        found = MakeStmt(T());
        if constexpr (std::tuple_size_v < decltype(FieldsOf(static_cast<const T*>(nullptr))) >> 0) {
          absl::StatusOr<T> node = ParseFields<T>(lexer_, scope_);
          found = node.ok() ? absl::StatusOr<Stmt>(MakeStmt(*std::move(node))) : node.status();
        }
      }
    };
    (attempt(static_cast<const Nodes*>(nullptr)), ...);
    if (found) return *std::move(found);
    return lexer_.Expected("a statement or `}`");
  }

  absl::StatusOr<Stmt> ParseFor() {
    For loop;
    HACKC_ASSIGN_OR_RETURN(loop.axis, lexer_.PercentName("the loop's %axis"));
    HACKC_RETURN_IF_ERROR(lexer_.Expect(":"));
    HACKC_ASSIGN_OR_RETURN(loop.role, ParseEnum<AxisRole>(lexer_));
    if (!lexer_.Is("in") && !lexer_.Is("[")) {
      HACKC_ASSIGN_OR_RETURN(loop.kind, ParseEnum<LoopKind>(lexer_));
    }
    if (lexer_.Is("[")) HACKC_RETURN_IF_ERROR(ParseValue(lexer_, scope_, loop.digits));
    HACKC_RETURN_IF_ERROR(lexer_.Expect("in"));
    HACKC_ASSIGN_OR_RETURN(loop.extent, ParseExpr(lexer_, scope_));
    HACKC_RETURN_IF_ERROR(lexer_.Expect("{"));
    size_t mark = variables_.Enter();
    variables_.Add(loop.axis, DType::kI32);
    HACKC_ASSIGN_OR_RETURN(loop.body, ParseBody());
    variables_.Leave(mark);
    return MakeStmt(std::move(loop));
  }

  absl::StatusOr<Stmt> ParseLet() {
    Let let;
    HACKC_ASSIGN_OR_RETURN(let.name, lexer_.PercentName("a %name"));
    HACKC_RETURN_IF_ERROR(lexer_.Expect("="));
    HACKC_ASSIGN_OR_RETURN(let.value, ParseExpr(lexer_, scope_));
    variables_.Add(let.name, let.value->dtype);
    return MakeStmt(std::move(let));
  }

  absl::StatusOr<Stmt> ParseAccumulator() {
    Accumulator acc;
    HACKC_ASSIGN_OR_RETURN(acc.name, lexer_.PercentName("the accumulator's %name"));
    HACKC_RETURN_IF_ERROR(lexer_.Expect(":"));
    HACKC_RETURN_IF_ERROR(ParseValue(lexer_, scope_, acc.monoid));
    if (lexer_.Is("[")) HACKC_RETURN_IF_ERROR(ParseValue(lexer_, scope_, acc.extents));
    if (lexer_.Accept("layout")) HACKC_RETURN_IF_ERROR(ParseValue(lexer_, scope_, acc.layout));
    if (acc.extents.empty()) variables_.Add(acc.name, DType::kF32);
    buffers_.Add(acc.name, DType::kF32);  // @name[] reads a scalar too
    return MakeStmt(std::move(acc));
  }

  absl::StatusOr<Stmt> ParseAccumulate() {
    Accumulate update;
    Token at = lexer_.Peek();
    HACKC_ASSIGN_OR_RETURN(update.name, lexer_.PercentName("an accumulator"));
    if (lexer_.Is("[")) HACKC_RETURN_IF_ERROR(ParseValue(lexer_, scope_, update.indices));
    if (!buffers_.Find(update.name)) {
      return TextLexer::ErrorAt(at, "accumulator %", update.name, " is not defined here");
    }
    HACKC_RETURN_IF_ERROR(lexer_.Expect("<-"));
    do {
      HACKC_ASSIGN_OR_RETURN(Expr operand, ParseExpr(lexer_, scope_));
      update.operands.push_back(std::move(operand));
    } while (lexer_.Accept(","));
    HACKC_RETURN_IF_ERROR(ParseGuard(update.guard));
    return MakeStmt(std::move(update));
  }

  absl::StatusOr<Stmt> ParseStore() {
    Store store;
    Token at = lexer_.Peek();
    HACKC_ASSIGN_OR_RETURN(store.buffer, lexer_.AtName("a @buffer"));
    if (!buffers_.Find(store.buffer)) {
      return TextLexer::ErrorAt(at, "@", store.buffer, " is not defined here");
    }
    HACKC_RETURN_IF_ERROR(ParseValue(lexer_, scope_, store.indices));
    HACKC_RETURN_IF_ERROR(lexer_.Expect("="));
    HACKC_ASSIGN_OR_RETURN(store.value, ParseExpr(lexer_, scope_));
    HACKC_RETURN_IF_ERROR(ParseGuard(store.guard));
    if (lexer_.Accept("via")) {
      HACKC_ASSIGN_OR_RETURN(store.engine, ParseEnum<CopyEngine>(lexer_));
    }
    return MakeStmt(std::move(store));
  }

  absl::StatusOr<Stmt> ParseAlloc() {
    Alloc alloc;
    HACKC_ASSIGN_OR_RETURN(alloc.name, lexer_.AtName("a @name"));
    HACKC_RETURN_IF_ERROR(lexer_.Expect(":"));
    HACKC_ASSIGN_OR_RETURN(alloc.dtype, ParseDType(lexer_));
    HACKC_ASSIGN_OR_RETURN(alloc.space, ParseEnum<MemorySpace>(lexer_));
    HACKC_RETURN_IF_ERROR(ParseValue(lexer_, scope_, alloc.extents));
    if (lexer_.Accept("layout")) HACKC_RETURN_IF_ERROR(ParseValue(lexer_, scope_, alloc.layout));
    if (lexer_.Accept("padding")) {
      HACKC_ASSIGN_OR_RETURN(alloc.padding, lexer_.SmallInteger("elements of padding"));
    }
    if (lexer_.Accept("slots")) {
      HACKC_ASSIGN_OR_RETURN(alloc.slots, lexer_.SmallInteger("slots"));
    }
    if (lexer_.Accept("align")) {
      HACKC_ASSIGN_OR_RETURN(alloc.alignment, lexer_.SmallInteger("an alignment in bytes"));
    }
    buffers_.Add(alloc.name, alloc.dtype);
    return MakeStmt(std::move(alloc));
  }

  absl::StatusOr<Stmt> ParseIf() {
    If branch;
    Token at = lexer_.Peek();
    HACKC_ASSIGN_OR_RETURN(branch.condition, ParseExpr(lexer_, scope_));
    if (branch.condition->dtype != DType::kBool) return NotBool(at, branch.condition);
    HACKC_RETURN_IF_ERROR(lexer_.Expect("{"));
    HACKC_ASSIGN_OR_RETURN(branch.then, ParseBody());
    return MakeStmt(std::move(branch));
  }

  absl::StatusOr<Stmt> ParseRole() {
    Role role;
    HACKC_RETURN_IF_ERROR(lexer_.Expect("first"));
    HACKC_ASSIGN_OR_RETURN(role.first, lexer_.SmallInteger("the role's first warp"));
    HACKC_RETURN_IF_ERROR(lexer_.Expect("warps"));
    HACKC_ASSIGN_OR_RETURN(role.warps, lexer_.SmallInteger("a number of warps"));
    if (lexer_.Accept("registers")) {
      HACKC_ASSIGN_OR_RETURN(role.registers, lexer_.SmallInteger("registers of a thread"));
    }
    HACKC_RETURN_IF_ERROR(lexer_.Expect("{"));
    HACKC_ASSIGN_OR_RETURN(role.body, ParseBody());
    return MakeStmt(std::move(role));
  }

  absl::Status ParseGuard(Expr& guard) {
    if (!lexer_.Accept("when")) return absl::OkStatus();
    Token at = lexer_.Peek();
    HACKC_ASSIGN_OR_RETURN(guard, ParseExpr(lexer_, scope_));
    return guard->dtype == DType::kBool ? absl::OkStatus() : NotBool(at, guard);
  }

  static absl::Status NotBool(const Token& at, const Expr& e) {
    return TextLexer::ErrorAt(at, "expected a bool condition, got ", Name(e->dtype));
  }

  TextLexer lexer_;
  ExprScope scope_;
  NameTable variables_, buffers_, symbols_;
  int depth_ = 0;
};

// The launch of a kernel, in its generic form.
struct Launch {
  std::vector<Expr> grid;
  int threads = 128;
  int cluster = 1;
  int min_blocks_per_sm = 1;
};
HACKC_FIELDS(Launch, "launch", grid, threads, cluster, min_blocks_per_sm)

}  // namespace

absl::Status ParseValue(TextLexer& lexer, const ExprScope&, Digit& digit) {
  HACKC_ASSIGN_OR_RETURN(digit.kind, ParseEnum<Digit::Kind>(lexer));
  HACKC_RETURN_IF_ERROR(lexer.Expect("("));
  HACKC_ASSIGN_OR_RETURN(digit.extent, lexer.SmallInteger("the digit's extent"));
  if (lexer.Accept(",")) {
    HACKC_ASSIGN_OR_RETURN(digit.stride, lexer.SmallInteger("the digit's stride"));
  }
  return lexer.Expect(")");
}

absl::StatusOr<LoopFn> ParseLoop(std::string_view text) {
  LoopFn out;
  auto none = [](TextLexer&, const ExprScope&) { return absl::OkStatus(); };
  HACKC_ASSIGN_OR_RETURN(out.fn, FunctionParser(text).Parse("loop", none));
  return out;
}

absl::StatusOr<TileFn> ParseTile(std::string_view text) {
  TileFn out;
  auto schedule = [&](TextLexer& lexer, const ExprScope& scope) -> absl::Status {
    HACKC_RETURN_IF_ERROR(lexer.Expect("schedule"));
    HACKC_ASSIGN_OR_RETURN(out.schedule, ParseFields<Schedule>(lexer, scope));
    return absl::OkStatus();
  };
  HACKC_ASSIGN_OR_RETURN(out.fn, FunctionParser(text).Parse("tile", schedule));
  return out;
}

absl::StatusOr<KernelFn> ParseKernel(std::string_view text) {
  KernelFn out;
  auto launch = [&](TextLexer& lexer, const ExprScope& scope) -> absl::Status {
    HACKC_RETURN_IF_ERROR(lexer.Expect("launch"));
    HACKC_ASSIGN_OR_RETURN(Launch found, ParseFields<Launch>(lexer, scope));
    out.grid = std::move(found.grid);
    out.threads = found.threads;
    out.cluster = found.cluster;
    out.min_blocks_per_sm = found.min_blocks_per_sm;
    for (int line = lexer.Peek().line; lexer.Accept("tensor_map"); line = lexer.Peek().line) {
      HACKC_ASSIGN_OR_RETURN(out.maps.emplace_back(), ParseFields<BulkMap>(lexer, scope));
      out.maps.back().line = {line};
    }
    return absl::OkStatus();
  };
  HACKC_ASSIGN_OR_RETURN(out.fn, FunctionParser(text).Parse("kernel", launch));
  return out;
}

}  // namespace hackc::ir
