// SPDX-License-Identifier: MIT
#include "compiler/ir/kernel_verify.h"

#include <algorithm>

#include "compiler/ir/kernel_checks.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/shared_layout.h"

namespace hackc::ir {
namespace {

// Elements of one register array. A thread has 255 registers; far beyond them an array is memory.
constexpr int64_t kMaxRegisters = 1024;

class KernelVerifier : public KernelChecks {
 public:
  KernelVerifier(const KernelFn& kernel, const KernelLimits& limits)
      : KernelChecks(kernel), limits_(limits) {}

 protected:
  void Declare() override {
    if (kernel_.threads < 32 || kernel_.threads % 32 != 0 ||
        kernel_.threads > limits_.max_threads) {
      Error("launch", kernel_.threads, " threads, expected a multiple of 32 up to ",
            limits_.max_threads);
    }
    if (kernel_.cluster < 1 || kernel_.cluster > limits_.max_cluster) {
      Error("launch", "cluster of ", kernel_.cluster, ", expected 1 to ", limits_.max_cluster);
    }
    if (kernel_.min_blocks_per_sm < 1 || kernel_.min_blocks_per_sm > 32 ||
        int64_t{kernel_.min_blocks_per_sm} * kernel_.threads > limits_.threads_per_multiprocessor) {
      Error("launch", "min_blocks_per_sm ", kernel_.min_blocks_per_sm,
            ", expected 1 to 32 with at most ", limits_.threads_per_multiprocessor, " threads");
    }
    bool layable = true;
    WalkStmts(fn_.body, [&](const Alloc& alloc) { layable &= FitsLayout(alloc); });
    const int64_t shared = layable ? LayoutShared(fn_.body).total_bytes : 0;
    if (shared > limits_.shared_bytes) {
      Error("shared", shared, " bytes of shared memory, the limit is ", limits_.shared_bytes);
    }
    DeclareMaps();
    prover_.SetBuiltin(BuiltinKind::kThread, IntLit(kernel_.threads));
    if (kernel_.grid.size() != 3)
      return Error("launch", "grid of rank ", kernel_.grid.size(), ", expected 3");
    for (int i = 0; i < 3; ++i) {
      Expression(kernel_.grid[i], "grid extent", DType::kI32);
      const Range range = kernel_.grid[i] ? prover_.BoundsOf(kernel_.grid[i]) : Range{};
      const int64_t most = i == 0 ? kNoLimit : 65535;  // x: what 32 bits hold
      if (range.min < 1 || range.max > most || !OverSymbols(kernel_.grid[i])) {
        Error("launch", "grid extent `", Print(kernel_.grid[i]),
              "` is not over symbols, positive and, but for x, at most 65535");
      } else if (i == 0 && kernel_.cluster > 1 && !Divides(kernel_.grid[0], kernel_.cluster)) {
        Error("launch", "clusters of ", kernel_.cluster, " do not fill the grid's ",
              Print(kernel_.grid[0]), " blocks");
      }
      prover_.SetBuiltin(BlockIndex(i), kernel_.grid[i]);
    }
  }

  void Check(const Stmt& s) override {
    std::visit(
        [&]<typename T>(const T& n) {
          if constexpr (requires { n.guard; }) {
            T guarded = n;
            guarded.guard = nullptr;
            const Varies by = Dependence(n.guard);
            if (by > Control())  // CheckExpr has seen the rest
              WalkExprs({MakeStmt(guarded)}, [&](const Expr& e) { CheckShuffles(e, by); });
          }
          CheckNode(n);
        },
        s->node);
  }

  void After(const Stmt& s) override {
    if (const Let* let = As<Let>(s)) SetLet(*let);
    if (nest_.size() != 1 || s != fn_.body.back()) return;
    for (const EarlyRead& read : ReadsInFlight(kernel_))
      ErrorAt({read.nest}, "async", "@", read.buffer,
              " is read while a copy into it may be in flight");
    CheckUnitsEnd();
  }

  void CheckExpr(const Expr& e) override {
    CheckShuffles(e, Control());
    Walk(e, [&](const Load& load) { CheckRegisterIndex(load.buffer, load.indices); });
  }

 private:
  static bool FitsLayout(const Alloc& n) {
    double elements = 1;
    for (int64_t extent : n.extents) elements *= static_cast<double>(std::max<int64_t>(extent, 1));
    return elements < 0x1p30 && n.padding >= 0 && n.padding <= 1024 && IsPowerOfTwo(n.alignment) &&
           n.alignment <= 1024 && n.alignment >= SizeOf(n.dtype);
  }

  // Shuffles must not stand where only some lanes of a warp evaluate them.
  void CheckShuffles(const Expr& e, Varies control) {
    if (!e) return;
    if (As<Shuffle>(e) && control == Varies::kByThread) {
      Error("warp", "`", Print(e), "` is reached by only some lanes of a warp");
    }
    Expr decides;  // whether the other operands are evaluated
    if (const Select* s = As<Select>(e)) decides = s->condition;
    if (const Binary* binary = As<Binary>(e)) {
      if (binary->op == BinaryOp::kAnd || binary->op == BinaryOp::kOr) decides = binary->a;
    }
    if (const Load* load = As<Load>(e)) decides = load->guard;
    const Varies inner = std::max(control, Dependence(decides));
    for (const Expr& child : Children(e)) CheckShuffles(child, child == decides ? control : inner);
  }

  void CheckNode(const auto& n) {
    if constexpr (requires { this->CheckUnit(n); }) this->CheckUnit(n);
  }

  void CheckNode(const For& n) {
    if (!n.digits.empty()) Error("form", "a loop of Kernel IR has no digits");
    if (n.kind != LoopKind::kUnroll) return;
    const int64_t extent = AsInt(n.extent).value_or(0);
    if (extent < 1 || extent > 1024)
      Error("form", "unrolled extent `", Print(n.extent), "`, expected 1 to 1024");
    unrolled_.insert(n.axis);
  }
  void CheckNode(const Store& n) {
    if (n.engine != CopyEngine::kRegisters) Error("form", "a store goes through registers");
    if (n.cache != CacheHint::kNormal &&
        (!IsIn(MemorySpace::kShared, n.buffer) || !As<Load>(n.value)))
      Error("form", "a hint to the caches stands on a copy into shared memory");
    CheckRegisterIndex(n.buffer, n.indices);
  }
  void CheckNode(const Alloc& n) {
    if (n.space == MemorySpace::kLocal) {
      if (n.extents.size() != 1 || n.padding != 0 || !n.layout.empty()) {
        Error("registers", "a register array has one dimension, no padding and no layout");
      } else if (n.extents[0] > kMaxRegisters) {
        Error("registers", n.extents[0], " registers, more than ", kMaxRegisters);
      }
    } else if (n.space == MemorySpace::kMbarrier) {
      CheckMbarriers(n);
    } else if (n.slots < 1 || (n.slots > 1 && (n.extents.empty() || n.extents[0] != n.slots))) {
      Error("shared", n.slots, " slots, which the first dimension does not count");
    } else if (!FitsLayout(n) || !n.layout.empty()) {
      Error("shared", "no place for the array: padding ", n.padding, ", alignment ", n.alignment,
            ", layout of ", n.layout.size(), " dimensions");
    }
  }
  void CheckNode(const Barrier&) {
    if (Control() != Varies::kNever)
      Error("uniform", "only some threads of the block reach the barrier");
    CheckBlockBarrier();
  }
  void CheckVector(const std::string& memory, const std::vector<Expr>& indices,
                   const std::string& registers, const Expr& index, int width, const Expr& guard,
                   bool load) {
    const NameInfo* array = Registers(registers, index, width);
    Condition(guard);
    prover_.Assume(guard);
    const NameInfo* info = Memory(memory, load, !load);
    if (IsIn(MemorySpace::kLocal, memory)) Error("vector", "@", memory, " is a register array");
    CheckAccess(memory, indices, width);
    if (!info || !array) return;
    const int64_t bytes = int64_t{width} * SizeOf(info->dtype);
    if (info->dtype != array->dtype)
      Error("vector", "moves ", Name(info->dtype), " as ", Name(array->dtype));
    if (bytes != 2 && bytes != 4 && bytes != 8 && bytes != 16)
      return Error("vector", "a vector of ", bytes, " bytes");
    CheckAligned("vector", memory, indices, bytes);
    CheckAligned("vector", registers, {index}, bytes);
  }
  void CheckNode(const VectorLoad& n) {
    CheckVector(n.source, n.indices, n.target, n.target_index, n.width, n.guard, true);
    const NameInfo* info = Find(n.source);
    const NameInfo* array = Find(n.target);
    if (info && info->dtype != n.dtype && array && array->dtype == info->dtype)
      Error("vector", "loads ", Name(n.dtype), " from ", Name(info->dtype));
  }
  void CheckNode(const VectorStore& n) {
    CheckVector(n.target, n.indices, n.source, n.source_index, n.width, n.guard, false);
  }

  void CheckNode(const AsyncCopy& n) {
    const NameInfo* target = Memory(n.target, false, true);
    const NameInfo* source = Memory(n.source, true, false);
    if (n.bytes != 4 && n.bytes != 8 && n.bytes != 16)
      return Error("async", "a copy of ", n.bytes, " bytes");
    copies_.starts.push_back(Here());
    if (!target || !source) return;
    if (!IsIn(MemorySpace::kShared, n.target) || source->access != Access::kRead ||
        source->dtype != target->dtype) {
      return Error("async", "a copy moves a `read` buffer into shared memory of its dtype");
    }
    const int64_t width = n.bytes / SizeOf(target->dtype);
    CheckAccess(n.target, n.target_indices, width);
    CheckAligned("async", n.target, n.target_indices, n.bytes);
    Condition(n.guard);
    prover_.Assume(n.guard);
    CheckAccess(n.source, n.source_indices, width);
    CheckAligned("async", n.source, n.source_indices, n.bytes);
  }
  void CheckNode(const AsyncCommit&) { copies_.commits.push_back(Here()); }
  void CheckNode(const AsyncWait& n) {
    if (n.pending < 0) Error("async", "waits for ", n.pending, " pending groups");
    copies_.waits.push_back(Here());
  }

  void CheckNode(const LoadMatrix& n) {
    CheckWarp();
    if (n.count != 1 && n.count != 2 && n.count != 4) return Error("matrix", n.count, " matrices");
    const NameInfo* target = Registers(n.target, n.target_index, 2 * n.count);
    const NameInfo* source = Memory(n.source, true, false);
    CheckAccess(n.source, n.indices, 8);
    if (!target || !source) return;
    if (!IsIn(MemorySpace::kShared, n.source) || SizeOf(source->dtype) != 2 ||
        target->dtype != source->dtype) {
      return Error("matrix",
                   "moves 16-bit elements of shared memory into registers of their dtype");
    }
    if (!Divides(n.target_index, 2))
      Error("matrix", "target index `", Print(n.target_index), "` is odd");
    CheckAligned("matrix", n.source, n.indices, 16);
  }

  void CheckNode(const Mma& n) {
    CheckWarp();
    const bool wide = n.shape == MmaShape::kM16N8K16;
    const bool fits =
        wide ? n.dtype == DType::kBF16 || n.dtype == DType::kF16 : n.dtype == DType::kF32;
    if (!fits) return Error("mma", Name(n.dtype), " operands with k = ", wide ? 16 : 8);
    const NameInfo* c = Registers(n.accumulator, n.accumulator_index, 4);
    const NameInfo* a = Registers(n.a, n.a_index, wide ? 8 : 4);
    const NameInfo* b = Registers(n.b, n.b_index, wide ? 4 : 2);
    if (c && c->dtype != DType::kF32)
      Error("mma", "accumulator @", n.accumulator, " is ", Name(c->dtype));
    for (const NameInfo* operand : {a, b}) {
      if (operand && operand->dtype != n.dtype) {
        Error("mma", "a fragment of ", Name(operand->dtype), " for operands of ", Name(n.dtype));
      }
    }
    if (wide && !(Divides(n.a_index, 2) && Divides(n.b_index, 2)))
      Error("mma", "a fragment begins in the middle of a register");
  }

  const KernelLimits& limits_;
};

}  // namespace

std::vector<std::string> VerifyKernel(const KernelFn& kernel, const KernelLimits& limits) {
  return KernelVerifier(kernel, limits).Run();
}

}  // namespace hackc::ir
