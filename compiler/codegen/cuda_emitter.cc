// SPDX-License-Identifier: MIT
#include "compiler/codegen/cuda_emitter.h"

#include <bit>

#include "absl/algorithm/container.h"
#include "compiler/codegen/cuda_expr.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/shared_layout.h"
#include "compiler/ir/wgmma_layout.h"
#include "compiler/support/cat.h"
#include "compiler/support/internal_error.h"

namespace hackc::codegen {
namespace {

using ir::As;
using ir::Expr;

class Emitter {
 public:
  explicit Emitter(const ir::KernelFn& kernel)
      : kernel_(kernel), layout_(ir::LayoutShared(kernel.fn.body)), exprs_(kernel.fn.symbols) {
    ir::WalkStmts(
        kernel.fn.body, [&](const ir::Wgmma& n) { wgmma_accumulators_.insert(n.accumulator); },
        [&](const ir::Alloc& alloc) {
          if (alloc.space == ir::MemorySpace::kLocal) registers_.insert(alloc.name);
        });
  }

  std::string Run(const std::string& entry) {
    for (const ir::BufferDecl& buffer : kernel_.fn.buffers) exprs_.DeclareGlobal(buffer);
    std::string parameters = Parameters();
    SetBuiltinRanges();
    indent_ = 1;
    EmitBlock(kernel_.fn.body);
    return Cat(exprs_.prelude().Text(), Comment(), "extern \"C\" __global__ void ", Attributes(),
               "\n", entry, "(", parameters, ") {\n", Opening(), body_, "}\n");
  }

 private:
  // ---- the function around the body -------------------------------------------------------------
  std::string Parameters() {
    std::string text;
    auto add = [&](const std::string& parameter) {
      text += Cat(text.empty() ? "\n    " : ",\n    ", parameter);
    };
    for (const ir::BufferDecl& buffer : kernel_.fn.buffers) {
      add(Cat(buffer.access == ir::Access::kRead ? "const " : "", exprs_.Type(buffer.dtype),
              "* __restrict__ ", BufferName(buffer.name)));
    }
    for (const ir::SymbolDecl& symbol : kernel_.fn.symbols) {
      add("int " + exprs_.names().Get(Names::Kind::kSymbol, symbol.name));
    }
    for (const ir::BulkMap& map : kernel_.maps) {
      add(Cat("const __grid_constant__ ", exprs_.prelude().Use("TensorMap"), " ",
              BufferName(map.name)));
    }
    return text;
  }

  void SetBuiltinRanges() {
    exprs_.ranges().SetBuiltin(ir::BuiltinKind::kThread, {0, kernel_.threads - 1});
    HACKC_CHECK(kernel_.grid.size() == 3) << kernel_.fn.name;
    for (int i = 0; i < 3; ++i) {
      exprs_.ranges().SetBuiltin(ir::BlockIndex(i),
                                 {0, ir::Bounds(kernel_.grid[i], exprs_.ranges()).max - 1});
    }
  }

  std::string Comment() const {
    std::string text = Cat(kernel_.fn.name, ": ", kernel_.fn.computes);
    // What would end or continue the comment.
    absl::c_replace_if(
        text, [](unsigned char c) { return c == '\\' || c < ' '; }, ' ');
    return Cat("\n// ", text, "\n");
  }

  std::string Attributes() const {
    std::string text =
        Cat("__launch_bounds__(", kernel_.threads, ", ", kernel_.min_blocks_per_sm, ")");
    if (kernel_.cluster > 1) text += Cat(" __cluster_dims__(", kernel_.cluster, ", 1, 1)");
    return text;
  }

  // Declarations that the body turned out to need.
  std::string Opening() {
    std::string text;
    for (ir::BuiltinKind kind : exprs_.builtins()) {
      static constexpr const char* kSources[] = {"threadIdx.x", "blockIdx.x", "blockIdx.y",
                                                 "blockIdx.z"};
      text += Cat("  const int ", exprs_.Print(ir::MakeBuiltin(kind)), " = ",
                  kSources[static_cast<size_t>(kind)], ";\n");
    }
    if (!layout_.slots.empty()) {
      text += Cat("  extern __shared__ __align__(", layout_.alignment,
                  ") unsigned char hackc_shared[];  // ", layout_.total_bytes, " bytes\n");
    }
    return text;
  }

  // ---- statements -------------------------------------------------------------------------------
  void Line(const auto&... parts) {
    body_.append(static_cast<size_t>(indent_) * 2, ' ');
    body_ += Cat(parts..., "\n");
  }

  void Call(std::string_view function, const auto&... arguments) {
    std::string list;
    ((list += Cat(list.empty() ? "" : ", ", arguments)), ...);
    Line(exprs_.prelude().Use(function), "(", list, ");");
  }

  // The one constant of its template.
  void CallWith(int constant, std::string_view function) {
    Line(exprs_.prelude().Use(function), "<", constant, ">();");
  }

  const std::string& BufferName(const std::string& name) {
    return exprs_.names().Get(Names::Kind::kBuffer, name);
  }

  void EmitBlock(const ir::Block& block) {
    for (const ir::Stmt& statement : block) {
      std::visit([&](const auto& node) { Emit(node); }, statement->node);
    }
  }

  void Nest(const ir::Block& block) {
    ++indent_;
    const size_t accumulators = accumulators_.size();
    EmitBlock(block);
    accumulators_.resize(accumulators);
    --indent_;
    Line("}");
  }

  // "if (guard) ", or nothing.
  std::string Guard(const Expr& guard) {
    return guard ? Cat("if (", exprs_.Print(guard), ") ") : std::string();
  }

  void Emit(const ir::For& loop) {
    HACKC_CHECK(loop.kind == ir::LoopKind::kSerial || loop.kind == ir::LoopKind::kUnroll)
        << "for %" << loop.axis << " has kind " << static_cast<int>(loop.kind);
    const std::string name = exprs_.names().Get(Names::Kind::kVar, loop.axis);
    std::string extent = exprs_.Print(loop.extent);
    exprs_.ranges().SetAxis(loop.axis, loop.extent);
    if (loop.kind == ir::LoopKind::kUnroll) Line("#pragma unroll");
    Line("for (int ", name, " = 0; ", name, " < ", extent, "; ++", name, ") {");
    Nest(loop.body);
  }

  void Emit(const ir::Let& let) {
    std::string value = exprs_.Print(let.value);
    if (!ir::IsFloat(let.value->dtype)) {
      exprs_.ranges().SetVar(let.name, ir::Bounds(let.value, exprs_.ranges()));
    }
    Line("const ", exprs_.Type(let.value->dtype), " ",
         exprs_.names().Get(Names::Kind::kVar, let.name), " = ", value, ";");
  }

  void Emit(const ir::If& branch) {
    Line("if (", exprs_.Print(branch.condition), ") {");
    Nest(branch.then);
  }

  void Emit(const ir::Alloc& alloc) {
    exprs_.DeclareAlloc(alloc);
    const std::string& name = BufferName(alloc.name);
    std::string type = exprs_.Type(alloc.dtype);
    if (alloc.space != ir::MemorySpace::kLocal) {
      int64_t offset = layout_.Find(alloc.name)->offset;
      Line(type, "* const ", name, " = (", type, "*)(hackc_shared + ", offset, ");");
    } else if (alloc.extents.empty()) {
      Line(type, " ", name, ";");
    } else {
      // Vectors of up to 16 bytes move in and out of register arrays.
      Line("alignas(16) ", type, " ", name, "[", ir::ElementCount(alloc), "];");
      if (wgmma_accumulators_.count(alloc.name)) accumulators_.push_back(name);
    }
  }

  void Emit(const ir::Store& store) {
    HACKC_CHECK(store.engine == ir::CopyEngine::kRegisters)
        << "store @" << store.buffer << " by cp.async";
    HACKC_CHECK(store.value->dtype == exprs_.TypeOf(store.buffer))
        << "store @" << store.buffer << " = " << ir::Print(store.value);
    Line(Guard(store.guard), exprs_.Element(store.buffer, store.indices), " = ",
         exprs_.Print(store.value), ";");
  }

  static const char* VectorType(int64_t bytes) {
    HACKC_CHECK(bytes > 0 && bytes <= 16 && (bytes & (bytes - 1)) == 0)
        << "no vector of " << bytes << " bytes";
    static constexpr const char* kTypes[] = {"unsigned char", "unsigned short", "unsigned", "uint2",
                                             "uint4"};
    return kTypes[std::countr_zero(static_cast<uint64_t>(bytes))];
  }

  void Emit(const ir::VectorLoad& load) {
    const int bytes = load.width * ir::SizeOf(load.dtype);
    const std::string type = VectorType(bytes);
    std::string value = Cat("*(const ", type, "*)", exprs_.Address(load.source, load.indices));
    if (load.guard) {
      std::string zero = bytes > 4 ? type + "{}" : "0";
      value = Cat("(", exprs_.Print(load.guard), ") ? ", value, " : ", zero);
    }
    Line("*(", type, "*)", exprs_.Address(load.target, {load.target_index}), " = ", value, ";");
  }

  void Emit(const ir::VectorStore& store) {
    const char* type = VectorType(store.width * ir::SizeOf(exprs_.TypeOf(store.target)));
    Line(Guard(store.guard), "*(", type, "*)", exprs_.Address(store.target, store.indices),
         " = *(const ", type, "*)", exprs_.Address(store.source, {store.source_index}), ";");
  }

  void Emit(const ir::Barrier&) { Line("__syncthreads();"); }

  void Emit(const ir::AsyncCopy& copy) {
    HACKC_CHECK(copy.bytes == 4 || copy.bytes == 8 || copy.bytes == 16) << copy.bytes << " bytes";
    std::string guard = copy.guard ? Cat(", ", exprs_.Print(copy.guard)) : std::string();
    Line(exprs_.prelude().Use("copy_async"), "<", copy.bytes,
         copy.cache == ir::CacheHint::kKeep ? ", true" : "", ">(",
         exprs_.Address(copy.target, copy.target_indices), ", ",
         exprs_.Address(copy.source, copy.source_indices), guard, ");");
  }

  void Emit(const ir::AsyncCommit&) { Call("copy_async_commit"); }
  void Emit(const ir::AsyncWait& wait) { CallWith(wait.pending, "copy_async_wait"); }

  void Emit(const ir::LoadMatrix& load) {
    Call(Cat("load_matrix_x", load.count, load.transposed ? "_transposed" : ""),
         exprs_.Address(load.target, {load.target_index}),
         exprs_.Address(load.source, load.indices));
  }

  void Emit(const ir::Mma& mma) {
    bool sixteen = mma.shape == ir::MmaShape::kM16N8K16;
    HACKC_CHECK(sixteen == (mma.dtype == ir::DType::kBF16 || mma.dtype == ir::DType::kF16))
        << "mma of " << ir::Name(mma.dtype);
    const std::string function =
        sixteen ? Cat("mma_m16n8k16_", ir::Name(mma.dtype)) : "mma_m16n8k8_tf32";
    Call(function, exprs_.Address(mma.accumulator, {mma.accumulator_index}),
         exprs_.Address(mma.a, {mma.a_index}), exprs_.Address(mma.b, {mma.b_index}));
  }

  void Emit(const ir::AtomicAdd& n) {
    Line(Guard(n.guard), "atomicAdd(", exprs_.Address(n.buffer, n.indices), ", ",
         exprs_.Print(n.value), ");");
  }

  // ---- sm_90a -----------------------------------------------------------------------------------
  void Emit(const ir::Role& role) {
    const std::string thread = exprs_.Print(ir::MakeBuiltin(ir::BuiltinKind::kThread));
    Line("if (", thread, " >= ", 32 * role.first, " && ", thread, " < ",
         32 * (role.first + role.warps), ") {");
    if (role.registers != 0) {
      // Launched with an equal share each.
      const bool fewer = role.registers < 65536 / kernel_.min_blocks_per_sm / kernel_.threads;
      ++indent_;
      CallWith(role.registers, fewer ? "fewer_registers" : "more_registers");
      --indent_;
    }
    Nest(role.body);
  }
  void Emit(const ir::NamedBarrier& n) { Call("named_barrier", n.id, n.threads); }
  void Emit(const ir::MbarrierInit& n) {
    Call("mbarrier_init", BufferName(n.barrier), layout_.Find(n.barrier)->bytes / 8, n.count);
  }
  void Emit(const ir::MbarrierArrive& n) {
    Call("mbarrier_arrive", exprs_.Address(n.barrier, {n.index}), n.bytes);
  }
  void Emit(const ir::MbarrierWait& n) {
    Call("mbarrier_wait", exprs_.Address(n.barrier, {n.index}), exprs_.Print(n.parity));
  }
  void Emit(const ir::ProxyFence&) { Call("proxy_fence"); }

  // The map's address, then what stands between, then the coordinates, innermost first.
  std::string MapAndCoordinates(const std::string& map, const std::string& between,
                                const std::vector<Expr>& coordinates) {
    std::string text = Cat("&", BufferName(map), between);
    for (size_t i = coordinates.size(); i-- > 0;) text += ", " + exprs_.Print(coordinates[i]);
    return text;
  }
  void Emit(const ir::BulkLoad& n) {
    Call(Cat("bulk_load_", n.coordinates.size()), exprs_.Address(n.target, n.target_indices),
         MapAndCoordinates(n.map, ", " + exprs_.Address(n.barrier, {n.barrier_index}),
                           n.coordinates));
  }
  void Emit(const ir::BulkStore& n) {
    Call(Cat("bulk_store_", n.coordinates.size()), exprs_.Address(n.source, n.source_indices),
         MapAndCoordinates(n.map, "", n.coordinates));
  }
  void Emit(const ir::BulkCommit&) { Call("bulk_commit"); }
  void Emit(const ir::BulkWait& n) { CallWith(n.pending, n.read ? "bulk_wait_read" : "bulk_wait"); }

  std::string Operand(const std::string& memory, const std::vector<Expr>& indices,
                      const ir::OperandLayout& layout) {
    const int mode = layout.swizzle == 0 ? 0 : 1 + std::countr_zero(128u / layout.swizzle);
    return Cat(exprs_.prelude().Use("wgmma_operand"), "(", exprs_.Address(memory, indices), ", ",
               layout.leading, ", ", layout.stride, ", ", mode, ")");
  }
  void Emit(const ir::Wgmma& n) {
    const bool registers = registers_.count(n.a) > 0;
    Line(exprs_.prelude().UseWgmma(n, registers), "(",
         exprs_.Address(n.accumulator, {n.accumulator_index}), ", ",
         registers ? exprs_.Address(n.a, n.a_indices) : Operand(n.a, n.a_indices, LayoutOfA(n)),
         ", ", Operand(n.b, n.b_indices, LayoutOfB(n)), ", ",
         n.reset ? Cat("!(", exprs_.Print(n.reset), ")") : "true", ");");
  }
  void Emit(const ir::WgmmaFence&) { Call("wgmma_fence"); }
  void Emit(const ir::WgmmaCommit&) { Call("wgmma_commit"); }
  void Emit(const ir::WgmmaWait& n) {
    CallWith(n.pending, "wgmma_wait");
    for (const std::string& name : accumulators_) Call("wgmma_settle", name);
  }

  void Emit(const ir::Accumulator& n) { Refuse("accumulator %" + n.name); }
  void Emit(const ir::Accumulate& n) { Refuse("accumulate into %" + n.name); }
  void Emit(const ir::Combine& n) { Refuse("combine %" + n.name); }
  void Refuse(const std::string& what) {
    HACKC_FAIL() << what << " in " << kernel_.fn.name << " is no Kernel IR";
  }

  const ir::KernelFn& kernel_;
  ir::SharedLayout layout_;
  CudaExprs exprs_;
  std::set<std::string> registers_, wgmma_accumulators_;  // IR names of the whole kernel
  std::vector<std::string> accumulators_;                 // those in scope, as C++ names
  std::string body_;
  int indent_ = 0;
};

}  // namespace

ir::CudaFn EmitCuda(const ir::KernelFn& kernel) {
  std::string entry = "hackc_" + Sanitize(kernel.fn.name);
  std::string text = Emitter(kernel).Run(entry);
  return {kernel.fn.name, entry, std::move(text)};
}

}  // namespace hackc::codegen
