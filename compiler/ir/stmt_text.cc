// SPDX-License-Identifier: MIT
#include "compiler/ir/stmt_text.h"

#include <unordered_map>

#include "compiler/ir/rewrite.h"
#include "compiler/ir/text_form.h"

namespace hackc::ir {

// What a kernel adds to its function.
HACKC_FIELDS(KernelFn, "launch", grid, threads, cluster, min_blocks_per_sm)

namespace {

// Dtypes of names, with scopes: Leave(mark) forgets what came after Enter().
class NameTable {
 public:
  size_t Enter() const { return order_.size(); }
  void Leave(size_t mark) {
    for (; order_.size() > mark; order_.pop_back()) types_[order_.back()].pop_back();
  }
  void Add(const std::string& name, DType dtype) {
    types_[name].push_back(dtype);
    order_.push_back(name);
  }
  std::optional<DType> Find(std::string_view name) const {
    const auto* types = FindOrNull(types_, std::string(name));
    return types && !types->empty() ? std::optional(types->back()) : std::nullopt;
  }

 private:
  std::unordered_map<std::string, std::vector<DType>> types_;
  std::vector<std::string> order_;
};

Block* BodyOf(auto& n) {
  if constexpr (requires { n.body; }) return &n.body;
  if constexpr (requires { n.then; }) return &n.then;
  return nullptr;
}

class FunctionText {
 public:
  explicit FunctionText(Text& text) : text_(text) {
    text.scope.variable = [this](std::string_view name) { return variables_.Find(name); };
    text.scope.buffer = [this](std::string_view name) { return buffers_.Find(name); };
    text.scope.symbol = [this](std::string_view name) { return symbols_.Find(name).has_value(); };
  }

  // `decision` is what the level adds between the declarations and the body.
  void Whole(std::string_view level, Function& fn, auto&& decision) {
    text_.Header(level);
    text_("fn ", Plain(fn.name, "the function's name"), " ",
          Quoted(fn.computes, "a string that says what it computes"), " {\n");
    text_.Each("symbol", fn.symbols, [&](SymbolDecl& symbol) {
      text_("  ");
      Form(text_, symbol);
      symbols_.Add(symbol.name, DType::kI32);
    });
    text_.EachOf<Access>(fn.buffers, [&](BufferDecl& buffer) {
      buffer.line = text_.Line();
      text_("  ", buffer.access, " ", AtSign(buffer.name, "a @buffer"), ": ", buffer.dtype,
            buffer.shape, "\n");
      buffers_.Add(buffer.name, buffer.dtype);
    });
    fn.line = text_.Line();
    decision();
    Body(fn.body, 2);
    text_("\n");
    text_.End();
  }

  // Statements up to and with the closing brace.
  void Body(Block& block, int indent) {
    if (!text_.reads()) {
      for (const Stmt& s : block) {
        text_(std::string(indent, ' '));
        std::visit([&](auto n) { Statement(n, indent); }, s->node);
        text_("\n");
      }
      return text_(std::string(indent - 2, ' '), "}");
    }
    if (++depth_ > kMaxBlockDepth)
      text_.Fail(text_.Here(), "statements nested more than ", kMaxBlockDepth, " deep");
    size_t variables = variables_.Enter(), buffers = buffers_.Enter();
    while (text_.ok() && !text_.Has("}", false)) block.push_back(Read());
    variables_.Leave(variables);
    buffers_.Leave(buffers);
    --depth_;
  }

 private:
  Stmt Read() {
    StmtNode s{Barrier(), text_.Line()};
    const Token at = text_.Here();
    if (at.kind == TokenKind::kPercentName) {
      s.node = Accumulate();
    } else if (at.kind == TokenKind::kAtName) {
      s.node = Store();
    } else if (!text_.Choose(s.node)) {
      text_.Note(text_.lexer().Expected("a statement or `}`"));
    }
    std::visit([&](auto& n) { Statement(n, 0); }, s.node);
    return std::make_shared<const StmtNode>(std::move(s));
  }

  template <typename T>
  void Statement(T& n, int indent) {
    Head(n);
    const size_t mark = variables_.Enter();
    if constexpr (std::is_same_v<T, For>) variables_.Add(n.axis, DType::kI32);
    if (Block* body = BodyOf(n)) {
      text_(" {\n");
      Body(*body, indent + 2);
    }
    variables_.Leave(mark);
    if (text_.reads() && text_.ok()) Declare(n);
  }

  void Declare(const auto&) {}
  void Declare(const Let& n) { variables_.Add(n.name, n.value->dtype); }
  void Declare(const Alloc& n) { buffers_.Add(n.name, n.dtype); }
  void Declare(const Accumulator& n) {
    if (n.extents.empty()) variables_.Add(n.name, DType::kF32);
    buffers_.Add(n.name, DType::kF32);  // @name[] reads a scalar too
  }

  // What stands on a statement's first line, without the brace of its body.
  template <typename T>
  void Head(T& n) {
    text_(NodeName<T>());
    if constexpr (std::tuple_size_v < decltype(FieldsOf(static_cast<const T*>(nullptr))) >> 0) {
      text_(" ", n);
    }
  }
  void Head(For& n) {
    const bool plain = n.kind == LoopKind::kSequential;
    text_("for ", Percent(n.axis, "the loop's %axis"), ": ", n.role);
    if (!text_.Next("in", plain) && !text_.Next("[", plain)) text_(" ", n.kind);
    if (text_.Next("[", !n.digits.empty())) text_(" ", n.digits);
    text_(" in ", n.extent);
  }
  void Head(Let& n) { text_("let ", Percent(n.name, "a %name"), " = ", n.value); }
  void Head(Accumulator& n) {
    text_("acc ", Percent(n.name, "the accumulator's %name"), ": ", n.monoid);
    if (text_.Next("[", !n.extents.empty())) text_(n.extents);
    if (text_.Has(" layout ", !n.layout.empty())) text_(n.layout);
  }
  void Head(Accumulate& n) {
    const Token at = text_.Here();
    text_(Percent(n.name, "an accumulator"));
    if (text_.Next("[", !n.indices.empty())) text_(n.indices);
    Defined(at, "accumulator %", n.name);
    text_(" <- ");
    text_.Listed(n.operands, [&](Expr& operand) { text_(operand); });
    Guard(n.guard);
  }
  void Head(Store& n) {
    const Token at = text_.Here();
    text_(AtSign(n.buffer, "a @buffer"));
    Defined(at, "@", n.buffer);
    text_(n.indices, " = ", n.value);
    Guard(n.guard);
    if (text_.Has(" via ", n.engine != CopyEngine::kRegisters)) text_(n.engine);
    if (text_.Has(" cache ", n.cache != CacheHint::kNormal)) text_(n.cache);
  }
  void Head(Alloc& n) {
    text_("alloc ", AtSign(n.name, "a @name"), ": ", n.dtype, " ", n.space, n.extents);
    if (text_.Has(" layout ", !n.layout.empty())) text_(n.layout);
    if (text_.Has(" padding ", n.padding != 0)) text_(Number(n.padding, "elements of padding"));
    if (text_.Has(" slots ", n.slots != 1)) text_(Number(n.slots, "slots"));
    if (text_.Has(" align ", n.alignment != Alloc().alignment))
      text_(Number(n.alignment, "an alignment in bytes"));
  }
  void Head(If& n) {
    text_("if ");
    Condition(n.condition);
  }
  void Head(Role& n) {
    text_("role first ", Number(n.first, "the role's first warp"), " warps ",
          Number(n.warps, "a number of warps"));
    if (text_.Has(" registers ", n.registers != 0))
      text_(Number(n.registers, "registers of a thread"));
  }

  void Guard(Expr& guard) {
    if (text_.Has(" when ", guard != nullptr)) Condition(guard);
  }
  void Condition(Expr& e) {
    const Token at = text_.Here();
    text_(e);
    if (text_.reads() && text_.ok() && e->dtype != DType::kBool)
      text_.Fail(at, "expected a bool condition, got ", ir::Name(e->dtype));
  }
  void Defined(const Token& at, std::string_view what, const std::string& name) {
    if (text_.reads() && !buffers_.Find(name)) text_.Fail(at, what, name, " is not defined here");
  }

  Text& text_;
  NameTable variables_, buffers_, symbols_;
  int depth_ = 0;
};

void Form(Text& text, LoopFn& loop) {
  FunctionText(text).Whole("loop", loop.fn, [] {});
}

void Form(Text& text, TileFn& tile) {
  FunctionText(text).Whole("tile", tile.fn, [&] { text("  schedule ", tile.schedule, "\n"); });
}

void Form(Text& text, KernelFn& kernel) {
  FunctionText(text).Whole("kernel", kernel.fn, [&] {
    text("  launch ", kernel, "\n");
    text.Each("tensor_map", kernel.maps, [&](BulkMap& map) {
      map.line = text.Line();
      text("  tensor_map ", map, "\n");
    });
  });
}

template <typename Fn>
absl::StatusOr<Fn> Parse(std::string_view text) {
  TextLexer lexer(text);
  Text reader(lexer);
  Fn fn;
  Form(reader, fn);
  if (!reader.ok()) return reader.status();
  return fn;
}

std::string Printed(auto fn) {
  std::string out;
  Text printer(out);
  Form(printer, fn);
  return out;
}

}  // namespace

absl::StatusOr<LoopFn> ParseLoop(std::string_view text) { return Parse<LoopFn>(text); }
absl::StatusOr<TileFn> ParseTile(std::string_view text) { return Parse<TileFn>(text); }
absl::StatusOr<KernelFn> ParseKernel(std::string_view text) { return Parse<KernelFn>(text); }

std::string Print(const LoopFn& fn) { return Printed(fn); }
std::string Print(const TileFn& fn) { return Printed(fn); }
std::string Print(const KernelFn& fn) { return Printed(fn); }

std::string PathName(const StmtNode& s) {
  return std::visit(
      [](const auto& n) -> std::string {
        using T = std::decay_t<decltype(n)>;
        std::string word(NodeName<T>());
        if constexpr (std::is_same_v<T, For>) return Cat(word, " %", n.axis);
        constexpr bool kIsBuffer = std::is_same_v<T, Alloc> || std::is_same_v<T, Combine>;
        if constexpr (requires { n.name; }) return Cat(word, kIsBuffer ? " @" : " %", n.name);
        if constexpr (std::is_same_v<T, If>) return Cat(word, " ", Print(n.condition));
        if constexpr (std::is_same_v<T, Role>) return Cat(word, " first ", n.first);
        if constexpr (requires { n.target; }) return Cat(word, " @", n.target);
        if constexpr (requires { n.map; }) return Cat(word, " @", n.map);
        if constexpr (requires { n.barrier; }) return Cat(word, " @", n.barrier);
        if constexpr (requires { n.buffer; }) return Cat(word, " @", n.buffer);
        return word;
      },
      s.node);
}

}  // namespace hackc::ir
