// SPDX-License-Identifier: MIT
// Rules on roles, named barriers and mbarriers.
#include <algorithm>

#include "compiler/ir/kernel_checks.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/shared_layout.h"
#include "compiler/support/saturate.h"

namespace hackc::ir {
namespace {

constexpr int kMaxArrivals = (1 << 20) - 1;

// Whether the body that holds the statement `place` holds `other`, too, or a body round it does.
bool Within(const std::vector<Stmt>& place, const std::vector<Stmt>& other) {
  return place.size() <= other.size() && std::equal(place.begin(), place.end() - 1, other.begin());
}

}  // namespace

// ---- roles and barriers of groups ---------------------------------------------------------------
void KernelChecks::CheckUnit(const Role& n) {
  if (nest_.size() != 1) Error("role", "a role is no part of a loop, a branch or another role");
  if (n.first < 0 || n.warps < 1 || (n.first + n.warps) * 32 > kernel_.threads) {
    Error("role", "warps ", n.first, " to ", n.first + n.warps - 1, " of a block of ",
          kernel_.threads / 32);
  }
  if (n.registers != 0 && (n.registers < 24 || n.registers > 256 || n.registers % 8 != 0 ||
                           n.first % 4 != 0 || n.warps % 4 != 0)) {
    Error("role", n.registers,
          " registers, expected a multiple of 8 from 24 to 256, for whole warpgroups");
  } else if (n.registers != 0) {
    registers_.push_back(Here());
  }
  const Expr thread = MakeBuiltin(BuiltinKind::kThread);
  prover_.Assume(Le(IntLit(32 * n.first), thread));
  prover_.Assume(Lt(thread, IntLit(32 * (n.first + n.warps))));
}

void KernelChecks::CheckUnit(const NamedBarrier& n) {
  if (n.id < 1 || n.id > 15) return Error("named", "barrier ", n.id, ", expected 1 to 15");
  Meetings& all =
      meetings_.try_emplace(Cat("barrier ", n.id), Meetings{n.threads, "named"}).first->second;
  if (all.count != n.threads) {
    return Error("named", "barrier ", n.id, " of ", n.threads, " threads, elsewhere of ",
                 all.count);
  }
  CheckWarp();
  AddEvent(all.arrives, "named");
}

void KernelChecks::AddEvent(std::vector<Event>& events, RuleIn<kKernelRules> rule) {
  const std::optional<ThreadSet> threads = Threads();
  events.push_back({nest_, order_++, threads.value_or(ThreadSet()), threads.has_value()});
  if (!threads) Error(rule, "which threads get here cannot be told from the thread index");
}

// ---- mbarriers ----------------------------------------------------------------------------------
void KernelChecks::CheckMbarriers(const Alloc& n) {
  if (n.dtype != DType::kI64 || n.extents.size() != 1 || n.padding != 0 || !n.layout.empty() ||
      n.alignment % 8 != 0) {
    Error("mbarrier", "mbarriers are i64, of one dimension");
  }
}

KernelChecks::Meetings* KernelChecks::UseOf(const std::string& name, const Expr& index) {
  if (!IsIn(MemorySpace::kMbarrier, name)) {
    Error("mbarrier", "@", name, " holds no mbarriers");
    return nullptr;
  }
  CheckAccess(name, {index}, 1);
  Meetings* found = FindOrNull(meetings_, "@" + name);
  if (!found) {
    Error("mbarrier", "@", name, " is used before its mbarrier_init");
  } else if (!barrier_after_init_) {
    Error("mbarrier", "no barrier stands between @", name, "'s init and this");
  }
  return found;
}

void KernelChecks::CheckUnit(const MbarrierInit& n) {
  if (!IsIn(MemorySpace::kMbarrier, n.barrier))
    return Error("mbarrier", "@", n.barrier, " holds no mbarriers");
  if (nest_.size() != 1)
    Error("mbarrier", "mbarriers are initialised outside loops, branches and roles");
  if (n.count < 1 || n.count > kMaxArrivals)
    Error("mbarrier", "a count of ", n.count, ", expected 1 to ", kMaxArrivals);
  if (!meetings_.try_emplace("@" + n.barrier, Meetings{n.count, "arrive"}).second)
    Error("mbarrier", "@", n.barrier, " is initialised twice");
  barrier_after_init_ = false;
}

void KernelChecks::CheckUnit(const MbarrierArrive& n) {
  Meetings* barriers = UseOf(n.barrier, n.index);
  if (n.bytes < 0 || n.bytes > kMaxArrivals) Error("bytes", n.bytes, " bytes");
  if (barriers) AddEvent(barriers->arrives, "arrive");
  if (n.bytes == 0) return;
  const Block& round = nest_.size() > 1 ? ChildBlock(nest_[nest_.size() - 2]) : fn_.body;
  const std::optional<int64_t> bytes = BytesOn(round, n);
  if (!bytes) return Error("bytes", "how many bytes arrive cannot be told");
  if (*bytes != n.bytes)
    Error("bytes", "expects ", n.bytes, " bytes, the bulk loads beside it bring ", *bytes);
}

void KernelChecks::CheckUnit(const MbarrierWait& n) {
  Meetings* barriers = UseOf(n.barrier, n.index);
  Expression(n.parity, "parity", DType::kI32);
  if (!prover_.NonNegative(n.parity) || !prover_.Less(n.parity, IntLit(2)))
    Error("mbarrier", "parity `", Print(n.parity), "` is not provably 0 or 1");
  if (barriers) AddEvent(barriers->waits, "arrive");
}

std::optional<int64_t> KernelChecks::BytesOn(const Block& block,
                                             const MbarrierArrive& arrive) const {
  int64_t bytes = 0;
  for (const Stmt& s : block) {
    if (const BulkLoad* load = As<BulkLoad>(s)) {
      const BulkMap* map = FindMap(load->map);
      const NameInfo* target = Find(load->target);
      if (load->barrier != arrive.barrier || !Equal(load->barrier_index, arrive.index)) continue;
      if (!map || !target) return std::nullopt;
      bytes = SaturatedSum(bytes, SaturatedProduct(BoxElements(*map), SizeOf(target->dtype)));
    }
    const std::optional<int64_t> inside = BytesOn(ChildBlock(s), arrive);
    if (!inside) return std::nullopt;
    if (*inside == 0) continue;
    const For* loop = As<For>(s);
    const std::optional<int64_t> trips = loop ? AsInt(loop->extent) : std::nullopt;
    if (!trips) return std::nullopt;
    bytes = SaturatedSum(bytes, SaturatedProduct(*trips, *inside));
  }
  return bytes;
}

void KernelChecks::CheckRelease(const std::string& name, const Meetings& empty) {
  // Who waits here and then fills what is waited for at another mbarrier: its consumers must arrive
  // here.
  for (const auto& [full_name, full] : meetings_) {
    for (const Event& load : full.loads) {
      const bool waits = absl::c_any_of(empty.waits, [&](const Event& wait) {
        return wait.threads == load.threads && wait.nest.size() > 1 &&
               absl::c_linear_search(load.nest, wait.nest[wait.nest.size() - 2]);
      });
      if (!waits || full_name == name) continue;
      ThreadSet consumers, releasers;
      for (const Event& wait : full.waits) consumers |= wait.threads;
      for (const Event& arrive : empty.arrives) releasers |= arrive.threads;
      for (int group = 0; group < 1024; group += 128) {
        const ThreadSet mask = ThreadSet().set() >> (1024 - 128) << group;
        if ((consumers & mask).none() || (releasers & mask).any()) continue;
        return ErrorAt(load, "release", "of the threads that wait at ", full_name,
                       ", none of warps ", group / 32, " to ", group / 32 + 3, " arrives at ", name,
                       " before this fills again what they read");
      }
    }
  }
}

void KernelChecks::CheckUnitsEnd() {
  for (const auto& [name, all] : meetings_) {
    if (!all.waits.empty() && all.arrives.empty())
      ErrorAt(all.waits[0], "arrive", "nothing ever arrives at ", name);
    ThreadSet arriving;
    bool overlap = false, known = true;
    for (const Event& event : all.arrives) {
      known = known && event.known;
      const bool again = std::any_of(all.arrives.data(), &event, [&](const Event& earlier) {
        return earlier.threads == event.threads;
      });
      overlap = overlap || (!again && (arriving & event.threads).any());
      arriving |= event.threads;
    }
    if (!known) continue;  // which was reported
    if (overlap) {
      ErrorAt(all.arrives[0], all.rule, "a thread arrives at ", name,
              " here with some threads and elsewhere with others");
    } else if (!all.arrives.empty() && static_cast<int>(arriving.count()) != all.count) {
      ErrorAt(all.arrives[0], all.rule, arriving.count(), " threads arrive at ", name,
              ", which counts ", all.count);
    }
    for (const Event& load : all.loads) {
      const bool told = absl::c_any_of(all.arrives, [&](const Event& event) {
        return As<MbarrierArrive>(event.nest.back())->bytes > 0 && Within(event.nest, load.nest);
      });
      if (!told) ErrorAt(load, "bytes", "no arrive beside it expects these bytes at ", name);
    }
    if (!all.arrives.empty()) CheckRelease(name, all);
  }
  CheckTransfers(copies_);
  CheckTransfers(stores_);
  // A launch gives all threads the same, in steps of 8; roles then give and take.
  const int64_t all = 65536 / std::max(kernel_.min_blocks_per_sm, 1);
  const int64_t share = std::min<int64_t>(all / std::max(kernel_.threads, 32) / 8 * 8, 255);
  int64_t used = share * kernel_.threads;
  for (const Event& event : registers_) {
    const Role& role = *As<Role>(event.nest.back());
    used += (role.registers - share) * 32 * std::min(role.warps, 32);
  }
  if (used > all && !registers_.empty())
    ErrorAt(registers_.back(), "role", "the block's threads have ", used, " registers, of ", all);
}

void KernelChecks::CheckTransfers(const Transfers& all) {
  const auto follows = [&](const Event& later, const Event& place) {
    if (later.order > place.order) return all.in_rounds || Within(later.nest, place.nest);
    return all.in_rounds && absl::c_any_of(place.nest, [&](const Stmt& s) {
             const For* loop = As<For>(s);
             return loop && prover_.BoundsOf(loop->extent).max > 1 &&
                    absl::c_linear_search(later.nest, s);
           });
  };
  const auto leaves_some = [](const Event& wait) {  // a thread must not end before its bulk stores
    const BulkWait* bulk = As<BulkWait>(wait.nest.back());
    return bulk && bulk->pending > 0;
  };
  for (const Event& start : all.starts) {
    bool committed = false, waited = false;
    for (const Event& commit : all.commits) {
      if (!follows(commit, start)) continue;
      committed = true;
      waited |= absl::c_any_of(
          all.waits, [&](const Event& e) { return !leaves_some(e) && follows(e, commit); });
    }
    if (!waited)
      ErrorAt(start, all.rule, "the ", all.what, " is never ",
              committed ? "waited for" : "committed");
  }
}

}  // namespace hackc::ir
