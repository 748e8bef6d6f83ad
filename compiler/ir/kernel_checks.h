// SPDX-License-Identifier: MIT
// What the checks of Kernel IR ask about the place of a statement: whether threads differ in getting there,
// and which; whether an address is aligned; registers. The inside of kernel_verify.cc and unit_verify.cc.
//
// Thread safety: an object belongs to one thread.
#pragma once

#include <bitset>
#include <set>

#include "compiler/ir/kernel_verify.h"
#include "compiler/ir/stmt_verify.h"

namespace hackc::ir {

// How a value differs between the threads of a block.
enum class Varies : uint8_t { kNever, kByWarp, kByThread };

using ThreadSet = std::bitset<1024>;

class KernelChecks : public StmtVerifier {
 public:
  explicit KernelChecks(const KernelFn& kernel)
      : StmtVerifier("kernel", kernel.fn), kernel_(kernel) {}

 protected:
  void Error(RuleIn<kKernelRules> rule, const auto&... parts) { Report(*rule, Cat(parts...)); }

  Varies Control() const;  // of the statements round the current one
  Varies Dependence(const Expr& e) const;
  void EnterControl(Varies varies) { control_.push_back(varies); }
  void LeaveControl() { control_.pop_back(); }
  void SetLet(const Let& let);
  // Their values in the place of integer lets.
  Expr WithLets(const Expr& e) const { return Substitute(e, let_values_); }
  // The threads that get to the current statement, as far as conditions on the thread index say; absent
  // when other things that differ between threads decide.
  std::optional<ThreadSet> Threads() const;

  bool IsIn(MemorySpace space, const std::string& name) const {
    const NameInfo* info = Find(name);
    return info && info->IsIn(space);
  }
  void CheckRegisterIndex(const std::string& name, const std::vector<Expr>& indices);
  // A slice of a register array.
  const NameInfo* Registers(const std::string& name, const Expr& index, int64_t width);
  // The address of the access is a multiple of `bytes`, whatever the values of its variables.
  void CheckAligned(RuleIn<kKernelRules> rule, const std::string& name,
                    const std::vector<Expr>& indices, int64_t bytes);
  void CheckWarp() {
    if (Control() == Varies::kByThread) Error("warp", "only some lanes of a warp get here");
  }

  const KernelFn& kernel_;
  std::set<std::string> unrolled_;

 private:
  std::unordered_map<std::string, Varies> varies_;    // lets; everything else is the same for all
  std::unordered_map<std::string, Expr> let_values_;  // with the lets in them replaced
  std::vector<Varies> control_;
};

}  // namespace hackc::ir
