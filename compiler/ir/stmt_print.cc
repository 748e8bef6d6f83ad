// SPDX-License-Identifier: MIT
#include "compiler/ir/field_text.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/stmt_text.h"

namespace hackc::ir {
namespace {

void PrintList(const std::vector<Expr>& items, std::string& out) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i) out += ", ";
    out += Print(items[i]);
  }
}

void PrintGuard(const Expr& guard, std::string& out) {
  if (guard) out += " when " + Print(guard);
}

// What stands on a statement's first line, without the brace of its body.
struct HeadPrinter {
  std::string& out;

  void PrintLayout(const std::vector<std::vector<Digit>>& layout) const {
    if (layout.empty()) return;
    out += " layout ";
    PrintValue(layout, out);
  }
  void operator()(const For& n) const {
    out += Cat("for %", n.axis, ": ", EnumName(n.role));
    if (n.kind != LoopKind::kSequential) out += Cat(" ", EnumName(n.kind));
    if (!n.digits.empty()) {
      out += " ";
      PrintValue(n.digits, out);
    }
    out += " in " + Print(n.extent);
  }
  void operator()(const Let& n) const { out += Cat("let %", n.name, " = ", Print(n.value)); }
  void operator()(const Accumulator& n) const {
    out += Cat("acc %", n.name, ": ", Name(n.monoid));
    if (!n.extents.empty()) PrintValue(n.extents, out);
    PrintLayout(n.layout);
  }
  void operator()(const Accumulate& n) const {
    out += "%" + n.name;
    if (!n.indices.empty()) PrintValue(n.indices, out);
    out += " <- ";
    PrintList(n.operands, out);
    PrintGuard(n.guard, out);
  }
  void operator()(const Store& n) const {
    out += "@" + n.buffer;
    PrintValue(n.indices, out);
    out += " = " + Print(n.value);
    PrintGuard(n.guard, out);
    if (n.engine != CopyEngine::kRegisters) out += Cat(" via ", EnumName(n.engine));
  }
  void operator()(const Alloc& n) const {
    out += Cat("alloc @", n.name, ": ", Name(n.dtype), " ", EnumName(n.space));
    PrintValue(n.extents, out);
    PrintLayout(n.layout);
    if (n.padding != 0) out += Cat(" padding ", n.padding);
    if (n.slots != 1) out += Cat(" slots ", n.slots);
    if (n.alignment != Alloc().alignment) out += Cat(" align ", n.alignment);
  }
  void operator()(const If& n) const { out += "if " + Print(n.condition); }
  void operator()(const Role& n) const {
    out += Cat("role first ", n.first, " warps ", n.warps);
    if (n.registers != 0) out += Cat(" registers ", n.registers);
  }
  template <typename T>
  void operator()(const T& n) const {
    out += NodeName<T>();
    if constexpr (std::tuple_size_v < decltype(FieldsOf(static_cast<const T*>(nullptr))) >> 0) {
      out += " ";
      PrintFields(n, out);
    }
  }
};

void PrintBlock(const Block& block, int indent, std::string& out) {
  for (const Stmt& s : block) {
    out.append(indent, ' ');
    std::visit(HeadPrinter{out}, s->node);
    if (As<For>(s) || As<If>(s) || As<Role>(s)) {
      out += " {\n";
      PrintBlock(ChildBlock(s), indent + 2, out);
      out.append(indent, ' ');
      out += "}";
    }
    out += "\n";
  }
}

std::string PrintFunction(std::string_view level, const Function& fn, const std::string& decision) {
  std::string out = Cat("hackc ", level, " 1\nfn ", fn.name, " ", PrintString(fn.computes), " {\n");
  for (const SymbolDecl& symbol : fn.symbols) out += Cat("  ", Print(symbol), "\n");
  for (const BufferDecl& buffer : fn.buffers) {
    out += Cat("  ", EnumName(buffer.access), " @", buffer.name, ": ", Name(buffer.dtype));
    PrintValue(buffer.shape, out);
    out += "\n";
  }
  out += decision;
  PrintBlock(fn.body, 2, out);
  out += "}\n";
  return out;
}

}  // namespace

void PrintValue(const Digit& digit, std::string& out) {
  out += Cat(EnumName(digit.kind), "(", digit.extent);
  if (digit.kind == Digit::Kind::kThread || digit.stride != 1) out += Cat(", ", digit.stride);
  out += ")";
}

std::string Print(const LoopFn& fn) { return PrintFunction("loop", fn.fn, ""); }

std::string Print(const TileFn& fn) {
  std::string schedule = "  schedule ";
  PrintFields(fn.schedule, schedule);
  return PrintFunction("tile", fn.fn, schedule + "\n");
}

std::string Print(const KernelFn& fn) {
  std::string launch = "  launch {grid = ";
  PrintValue(fn.grid, launch);
  launch += Cat(", threads = ", fn.threads, ", cluster = ", fn.cluster,
                ", min_blocks_per_sm = ", fn.min_blocks_per_sm, "}\n");
  for (const BulkMap& map : fn.maps) {
    launch += "  tensor_map ";
    PrintFields(map, launch);
    launch += "\n";
  }
  return PrintFunction("kernel", fn.fn, launch);
}

std::string Print(const Block& block, int indent) {
  std::string out;
  PrintBlock(block, indent, out);
  return out;
}

std::string PathName(const StmtNode& s) {
  return std::visit(
      [](const auto& n) -> std::string {
        using T = std::decay_t<decltype(n)>;
        std::string word(NodeName<T>());
        if constexpr (std::is_same_v<T, For>) return Cat(word, " %", n.axis);
        if constexpr (std::is_same_v<T, Let> || std::is_same_v<T, Accumulator> ||
                      std::is_same_v<T, Accumulate>) {
          return Cat(word, " %", n.name);
        }
        if constexpr (std::is_same_v<T, Store>) return Cat(word, " @", n.buffer);
        if constexpr (std::is_same_v<T, Alloc> || std::is_same_v<T, Combine>)
          return Cat(word, " @", n.name);
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
