// SPDX-License-Identifier: MIT
#include "compiler/ir/kernel_checks.h"

#include <algorithm>

#include "compiler/ir/linear.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/shared_layout.h"

namespace hackc::ir {

Varies KernelChecks::Control() const {
  Varies most = Varies::kNever;
  for (size_t i = 0; i + 1 < nest_.size(); ++i) {
    if (const For* loop = As<For>(nest_[i])) most = std::max(most, Dependence(loop->extent));
    if (const If* branch = As<If>(nest_[i])) most = std::max(most, Dependence(branch->condition));
    if (As<Role>(nest_[i])) most = std::max(most, Varies::kByWarp);
  }
  return most;
}

Varies KernelChecks::Dependence(const Expr& e) const {
  if (!e) return Varies::kNever;
  if (const Builtin* builtin = As<Builtin>(e)) {
    return builtin->kind == BuiltinKind::kThread ? Varies::kByThread : Varies::kNever;
  }
  if (const Var* var = As<Var>(e)) return FindOr(varies_, var->name, Varies::kNever);
  if (As<Shuffle>(e)) return Varies::kByThread;
  if (const Load* load = As<Load>(e);
      load && (!Find(load->buffer) || IsIn(MemorySpace::kLocal, load->buffer))) {
    return Varies::kByThread;
  }
  if (const Binary* binary = As<Binary>(e)) {
    const Builtin* thread = As<Builtin>(binary->a);
    const int64_t by = AsInt(binary->b).value_or(0);
    if (thread && thread->kind == BuiltinKind::kThread &&
        ((binary->op == BinaryOp::kFloorDiv && by > 0 && by % 32 == 0) ||
         (binary->op == BinaryOp::kShr && by >= 5))) {
      return Varies::kByWarp;
    }
  }
  Varies most = Varies::kNever;
  for (const Expr& child : Children(e)) most = std::max(most, Dependence(child));
  return most;
}

void KernelChecks::SetLet(const Let& let) {
  varies_[let.name] = Dependence(let.value);
  if (!let.value || IsFloat(let.value->dtype)) return;
  let_values_[let.name] = WithLets(let.value);
}

std::optional<ThreadSet> KernelChecks::Threads() const {
  ThreadSet threads;
  for (int i = 0; i < kernel_.threads && i < 1024; ++i) threads.set(i);
  for (const Stmt& s : nest_) {
    if (const Role* role = As<Role>(s)) {
      for (int i = 0; i < 1024; ++i) {
        if (i / 32 < role->first || i / 32 >= role->first + role->warps) threads.reset(i);
      }
    }
    if (const For* loop = As<For>(s); loop && Dependence(loop->extent) != Varies::kNever)
      return std::nullopt;
    const If* branch = As<If>(s);
    if (!branch) continue;
    for (const Expr& conjunct : Flatten(branch->condition, BinaryOp::kAnd)) {
      if (Dependence(conjunct) == Varies::kNever) continue;  // all of them or none
      const Expr resolved = WithLets(conjunct);
      for (int i = 0; i < 1024; ++i) {
        if (!threads.test(i)) continue;
        const auto holds = AsInt(Rewrite(resolved, [&](const Builtin& builtin) {
          return builtin.kind == BuiltinKind::kThread ? IntLit(i) : nullptr;
        }));
        if (!holds) return std::nullopt;
        if (*holds == 0) threads.reset(i);
      }
    }
  }
  return threads;
}

void KernelChecks::CheckRegisterIndex(const std::string& name, const std::vector<Expr>& indices) {
  if (!IsIn(MemorySpace::kLocal, name)) return;
  for (const Expr& index : indices) {
    const bool constant = AllNodes(index, [&](const Expr& node) {
      const Var* var = As<Var>(node);
      return var ? unrolled_.contains(var->name) : IsA<IntLiteral, Binary>(node);
    });
    if (!constant)
      Error("registers", "@", name, ": index `", Print(index),
            "` is not constant once loops are unrolled");
  }
}

const NameInfo* KernelChecks::Registers(const std::string& name, const Expr& index, int64_t width) {
  const NameInfo* info = Memory(name, false, false);
  if (!info) return nullptr;
  if (!IsIn(MemorySpace::kLocal, name)) {
    Error("registers", "@", name, " is not a register array");
    return nullptr;
  }
  CheckAccess(name, {index}, width);
  if (index) CheckRegisterIndex(name, {index});
  return info;
}

void KernelChecks::CheckAligned(RuleIn<kKernelRules> rule, const std::string& name,
                                const std::vector<Expr>& indices, int64_t bytes) {
  const NameInfo* info = Find(name);
  if (!info || indices.size() != info->extents.size()) return;
  const int64_t elements = bytes / SizeOf(info->dtype);
  Expr stride = IntLit(1);
  std::vector<int64_t> fixed;
  if (info->alloc) fixed = Strides(*info->alloc);
  bool aligned =
      bytes % SizeOf(info->dtype) == 0 && (!info->alloc || info->alloc->alignment % bytes == 0);
  for (size_t i = indices.size(); aligned && i-- > 0;) {
    // What is no integer was reported where it stands.
    if (!IsInteger(indices[i]->dtype) || !IsInteger(info->extents[i]->dtype)) return;
    const Expr step = info->alloc ? IntLit(fixed[i]) : stride;
    const auto divisor = static_cast<__int128>(KnownDivisor(prover_.Known(indices[i])));
    aligned = divisor * KnownDivisor(step) % elements == 0;
    stride = stride * info->extents[i];
  }
  if (!aligned)
    Error(rule, "@", name, ": the address is not provably a multiple of ", bytes, " bytes");
}

}  // namespace hackc::ir
