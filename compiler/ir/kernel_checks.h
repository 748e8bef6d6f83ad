// SPDX-License-Identifier: MIT
// The inside of kernel_verify.cc. What its checks ask about the place of a statement: whether
// threads differ in getting there, and which; whether an address is aligned; registers
// (kernel_checks.cc). And the rules of kernel_verify.h on roles and on the units that work beside
// the threads: mbarriers, bulk copies, wgmma, named barriers, atomics (unit_verify.cc,
// unit_memory_verify.cc); and copies_in_flight.cc.
//
// Thread safety: an object belongs to one thread.
#pragma once

#include <bitset>
#include <map>
#include <set>
#include <utility>

#include "compiler/ir/kernel_verify.h"
#include "compiler/ir/stmt_verify.h"
#include "compiler/ir/wgmma_layout.h"

namespace hackc::ir {

// How a value differs between the threads of a block.
enum class Varies : uint8_t { kNever, kByWarp, kByThread };

using ThreadSet = std::bitset<1024>;

int64_t BoxElements(const BulkMap& map);

// Reads of shared memory before the asynchronous copy into it has been waited for: by one thread,
// in the first block, with symbols at their largest and a few rounds of each loop. What this does
// not find may still be wrong in other blocks or rounds, or for other threads (the interpreter
// looks for races of all).
struct EarlyRead {
  std::vector<Stmt> nest;  // the statement that reads, last, and those round it
  std::string buffer;
};
std::vector<EarlyRead> ReadsInFlight(const KernelFn& kernel);

class KernelChecks : public StmtVerifier {
 public:
  explicit KernelChecks(const KernelFn& kernel)
      : StmtVerifier({"kernel", Holds, {LoopKind::kSerial, LoopKind::kUnroll}, true}, kernel.fn),
        kernel_(kernel) {}

 protected:
  void Error(RuleIn<kKernelRules> rule, const auto&... parts) { Report(*rule, Cat(parts...)); }

  Varies Control() const;  // of the statements round the current one
  Varies Dependence(const Expr& e) const;
  void SetLet(const Let& let);
  // Their values in the place of integer lets.
  Expr WithLets(const Expr& e) const { return Substitute(e, let_values_); }
  // The threads that get to the current statement, as far as conditions on the thread index say;
  // absent when other things that differ between threads decide.
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

  // ---- roles and units
  void DeclareMaps();
  void CheckMbarriers(const Alloc& n);
  void CheckUnit(const Role& n);
  void CheckUnit(const NamedBarrier& n);
  void CheckUnit(const MbarrierInit& n);
  void CheckUnit(const MbarrierArrive& n);
  void CheckUnit(const MbarrierWait& n);
  void CheckUnit(const BulkLoad& n);
  void CheckUnit(const BulkStore& n);
  void CheckUnit(const BulkCommit&) { stores_.commits.push_back(Here()); }
  void CheckUnit(const BulkWait& n);
  void CheckUnit(const Wgmma& n);
  void CheckUnit(const WgmmaFence&) { WholeWarpgroups(); }
  void CheckUnit(const WgmmaCommit&) { WholeWarpgroups(); }
  void CheckUnit(const WgmmaWait& n);
  void CheckUnit(const AtomicAdd& n);
  void CheckBlockBarrier() { barrier_after_init_ = true; }
  void CheckUnitsEnd();  // when all statements have been seen

  // A statement that works together with others, where it stands and who gets there.
  struct Event {
    std::vector<Stmt> nest;
    int order = 0;  // in the text
    ThreadSet threads = {};
    bool known = true;  // `threads`; false: an error was reported here
  };
  Event Here() { return {nest_, order_++}; }
  void ErrorAt(const Event& event, RuleIn<kKernelRules> rule, const auto&... parts) {
    const std::vector<Stmt> here = std::exchange(nest_, event.nest);
    Error(rule, parts...);
    nest_ = here;
  }
  // What is started, committed in groups and waited for: asynchronous copies, bulk stores.
  struct Transfers {
    RuleIn<kKernelRules> rule;
    std::string_view what;
    bool in_rounds;  // the rest may stand before it in a loop, and be done in the next round
    std::vector<Event> starts = {}, commits = {}, waits = {};
  };

  const KernelFn& kernel_;
  std::set<std::string> unrolled_;
  Transfers copies_{"async", "copy", true};

 private:
  static bool Holds(const Stmt& s) { return !IsA<Accumulator, Accumulate, Combine>(s); }

  // Of one array of mbarriers, or at one named barrier.
  struct Meetings {
    int count = 0;  // arrivals of a phase
    RuleIn<kKernelRules> rule;
    std::vector<Event> arrives = {}, waits = {}, loads = {};
  };

  Meetings* UseOf(const std::string& name, const Expr& index);
  void AddEvent(std::vector<Event>& events, RuleIn<kKernelRules> rule);
  const BulkMap* FindMap(const std::string& name) const {
    return FindBy(kernel_.maps, &BulkMap::name, name);
  }
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
  void CheckTransfers(const Transfers& all);

  bool barrier_after_init_ = true;
  std::map<std::string, Meetings> meetings_;  // by "@name" or "barrier 1"
  Transfers stores_{"bulk", "store", false};
  int order_ = 0;
  std::vector<Event> registers_;  // roles that change how many their threads have

  std::unordered_map<std::string, Varies> varies_;    // lets; everything else is the same for all
  std::unordered_map<std::string, Expr> let_values_;  // with the lets in them replaced
};

}  // namespace hackc::ir
