// SPDX-License-Identifier: MIT
// The rules of kernel_verify.h on roles and on the units that work beside the threads: mbarriers, bulk
// copies, wgmma, named barriers, atomics.
//
// Thread safety: an object belongs to one thread.
#pragma once

#include <map>
#include <utility>

#include "compiler/ir/kernel_checks.h"
#include "compiler/ir/wgmma_layout.h"

namespace hackc::ir {

int64_t BoxElements(const BulkMap& map);

class UnitVerifier : public KernelChecks {
 public:
  using KernelChecks::KernelChecks;

 protected:
  void DeclareMaps();
  void CheckMbarriers(const Alloc& n);
  void CheckUnit(const Role& n);
  void CheckUnit(const NamedBarrier& n);
  void CheckUnit(const MbarrierInit& n);
  void CheckUnit(const MbarrierArrive& n);
  void CheckUnit(const MbarrierWait& n);
  void CheckUnit(const BulkLoad& n);
  void CheckUnit(const BulkStore& n);
  void CheckUnit(const BulkCommit&) { commits_.push_back(nest_); }
  void CheckUnit(const BulkWait& n);
  void CheckUnit(const Wgmma& n);
  void CheckUnit(const WgmmaFence&) { WholeWarpgroups(); }
  void CheckUnit(const WgmmaCommit&) { WholeWarpgroups(); }
  void CheckUnit(const WgmmaWait& n);
  void CheckUnit(const AtomicAdd& n);
  void CheckBlockBarrier() { barrier_after_init_ = true; }
  void CheckUnitsEnd();  // when all statements have been seen

 private:
  // A statement on mbarriers, where it stands and who gets there.
  struct Event {
    std::vector<Stmt> nest;
    ThreadSet threads;
    bool known = true;  // `threads`; false: an error was reported here
  };
  // Of one array of mbarriers, or at one named barrier.
  struct Meetings {
    int count = 0;  // arrivals of a phase
    RuleIn<kKernelRules> rule;
    std::vector<Event> arrives = {}, waits = {}, loads = {};
  };

  void ErrorAt(const Event& event, RuleIn<kKernelRules> rule, const auto&... parts) {
    const std::vector<Stmt> here = std::exchange(nest_, event.nest);
    Error(rule, parts...);
    nest_ = here;
  }
  Meetings* UseOf(const std::string& name, const Expr& index);
  void AddEvent(std::vector<Event>& events, RuleIn<kKernelRules> rule);
  const BulkMap* FindMap(const std::string& name) const;
  void CheckBox(const std::string& map, const std::vector<Expr>& coordinates,
                const std::string& memory, const std::vector<Expr>& indices, bool load);
  bool WholeWarpgroups();
  void CheckOperand(const std::string& name, const std::vector<Expr>& indices,
                    const OperandLayout& layout, DType dtype, int rows, int depth);
  // Elements from the array's start to `reach` elements after @name[indices] are all inside it.
  bool Reaches(const std::string& name, const std::vector<Expr>& indices, int64_t reach);
  // Bytes of the bulk loads in `block` that complete on the same mbarrier; absent: not a constant.
  std::optional<int64_t> BytesOn(const Block& block, const MbarrierArrive& arrive) const;
  void CheckRelease(const std::string& name, const Meetings& empty);

  bool barrier_after_init_ = true;
  std::map<std::string, Meetings> meetings_;  // by "@name" or "barrier 1"
  std::vector<Event> stores_;
  std::vector<std::vector<Stmt>> commits_, store_waits_;
};

}  // namespace hackc::ir
