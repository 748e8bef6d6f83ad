// SPDX-License-Identifier: MIT
#include "compiler/ir/unit_verify.h"

#include <algorithm>

#include "compiler/ir/expr_query.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/shared_layout.h"

namespace hackc::ir {
namespace {

constexpr int kMaxArrivals = (1 << 20) - 1;

}  // namespace

// ---- roles and barriers of groups -----------------------------------------------------------------
void UnitVerifier::CheckUnit(const Role& n) {
  EnterControl(Varies::kByWarp);
  if (nest_.size() != 1) Error("role", "a role is no part of a loop, a branch or another role");
  if (n.first < 0 || n.warps < 1 || (n.first + n.warps) * 32 > kernel_.threads) {
    Error("role", "warps ", n.first, " to ", n.first + n.warps - 1, " of a block of ",
          kernel_.threads / 32);
  }
  if (n.registers != 0 && (n.registers < 24 || n.registers > 256 || n.registers % 8 != 0 ||
                           n.first % 4 != 0 || n.warps % 4 != 0)) {
    Error("role", n.registers,
          " registers, expected a multiple of 8 from 24 to 256, for whole warpgroups");
  }
  const Expr thread = MakeBuiltin(BuiltinKind::kThread);
  prover_.Assume(Le(IntLit(32 * n.first), thread));
  prover_.Assume(Lt(thread, IntLit(32 * (n.first + n.warps))));
}

void UnitVerifier::CheckUnit(const NamedBarrier& n) {
  if (n.id < 1 || n.id > 15) return Error("named", "barrier ", n.id, ", expected 1 to 15");
  Meetings& all = meetings_[n.id];
  if (all.threads != 0 && all.threads != n.threads)
    return Error("named", "barrier ", n.id, " of ", n.threads, " threads, elsewhere of ",
                 all.threads);
  all.threads = n.threads;
  CheckWarp();
  AddEvent(all.events, "named");
}

void UnitVerifier::AddEvent(std::vector<Event>& events, RuleIn<kKernelRules> rule) {
  const std::optional<ThreadSet> threads = Threads();
  events.push_back({nest_, threads.value_or(ThreadSet()), threads.has_value()});
  if (!threads) Error(rule, "which threads get here cannot be told from the thread index");
}

bool UnitVerifier::AllKnown(const std::vector<Event>& events) {
  return std::all_of(events.begin(), events.end(), [](const Event& event) { return event.known; });
}

std::optional<ThreadSet> UnitVerifier::Together(const std::vector<Event>& events) {
  ThreadSet all;
  for (const Event& event : events) all |= event.threads;
  for (const Event& a : events) {
    for (const Event& b : events) {
      if (a.threads != b.threads && (a.threads & b.threads).any()) return std::nullopt;
    }
  }
  return all;
}

// ---- mbarriers --------------------------------------------------------------------------------------
void UnitVerifier::CheckMbarriers(const Alloc& n) {
  if (n.dtype != DType::kI64 || n.extents.size() != 1 || n.padding != 0 || !n.layout.empty() ||
      n.alignment % 8 != 0) {
    Error("mbarrier", "mbarriers are i64, of one dimension");
  }
}

UnitVerifier::Mbarriers* UnitVerifier::UseOf(const std::string& name, const Expr& index) {
  if (!IsIn(MemorySpace::kMbarrier, name)) {
    Error("mbarrier", "@", name, " holds no mbarriers");
    return nullptr;
  }
  CheckAccess(name, {index}, 1);
  const auto found = mbarriers_.find(name);
  if (found == mbarriers_.end()) {
    Error("mbarrier", "@", name, " is used before its mbarrier_init");
    return nullptr;
  }
  if (!barrier_after_init_)
    Error("mbarrier", "no barrier stands between @", name, "'s init and this");
  return &found->second;
}

void UnitVerifier::CheckUnit(const MbarrierInit& n) {
  if (!IsIn(MemorySpace::kMbarrier, n.barrier))
    return Error("mbarrier", "@", n.barrier, " holds no mbarriers");
  if (nest_.size() != 1)
    Error("mbarrier", "mbarriers are initialised outside loops, branches and roles");
  if (n.count < 1 || n.count > kMaxArrivals)
    Error("mbarrier", "a count of ", n.count, ", expected 1 to ", kMaxArrivals);
  if (!mbarriers_.try_emplace(n.barrier, Mbarriers{n.count, {}, {}, {}}).second)
    Error("mbarrier", "@", n.barrier, " is initialised twice");
  barrier_after_init_ = false;
}

void UnitVerifier::CheckUnit(const MbarrierArrive& n) {
  Mbarriers* barriers = UseOf(n.barrier, n.index);
  if (n.bytes < 0 || n.bytes > kMaxArrivals) Error("bytes", n.bytes, " bytes");
  if (barriers) AddEvent(barriers->arrives, "arrive");
  if (n.bytes == 0) return;
  const Block& round = nest_.size() > 1 ? ChildBlock(nest_[nest_.size() - 2]) : fn_.body;
  const std::optional<int64_t> bytes = BytesOn(round, n);
  if (!bytes) return Error("bytes", "how many bytes arrive cannot be told");
  if (*bytes != n.bytes)
    Error("bytes", "expects ", n.bytes, " bytes, the bulk loads beside it bring ", *bytes);
}

void UnitVerifier::CheckUnit(const MbarrierWait& n) {
  Mbarriers* barriers = UseOf(n.barrier, n.index);
  Expression(n.parity, "parity", DType::kI32);
  if (!prover_.NonNegative(n.parity) || !prover_.Less(n.parity, IntLit(2)))
    Error("mbarrier", "parity `", Print(n.parity), "` is not provably 0 or 1");
  if (barriers) AddEvent(barriers->waits, "arrive");
}

std::optional<int64_t> UnitVerifier::BytesOn(const Block& block,
                                             const MbarrierArrive& arrive) const {
  int64_t bytes = 0;
  for (const Stmt& s : block) {
    if (const BulkLoad* load = As<BulkLoad>(s)) {
      const BulkMap* map = FindMap(load->map);
      const NameInfo* target = Find(load->target);
      if (load->barrier != arrive.barrier || !Equal(load->barrier_index, arrive.index)) continue;
      if (!map || !target) return std::nullopt;
      bytes += BoxElements(*map) * SizeOf(target->dtype);
    }
    const std::optional<int64_t> inside = BytesOn(ChildBlock(s), arrive);
    if (!inside) return std::nullopt;
    if (*inside == 0) continue;
    const For* loop = As<For>(s);
    const std::optional<int64_t> trips = loop ? AsInt(loop->extent) : std::nullopt;
    if (!trips) return std::nullopt;
    bytes += *trips * *inside;
  }
  return bytes;
}

void UnitVerifier::CheckRelease(const std::string& name, const Mbarriers& empty) {
  // Who waits here and then fills what is waited for at another mbarrier: its consumers must arrive here.
  for (const auto& [full_name, full] : mbarriers_) {
    for (const Event& load : full.loads) {
      const bool waits =
          std::any_of(empty.waits.begin(), empty.waits.end(), [&](const Event& wait) {
            return wait.threads == load.threads && wait.nest.size() > 1 &&
                   std::find(load.nest.begin(), load.nest.end(), wait.nest[wait.nest.size() - 2]) !=
                       load.nest.end();
          });
      if (!waits || full_name == name) continue;
      ThreadSet consumers, releasers;
      for (const Event& wait : full.waits) consumers |= wait.threads;
      for (const Event& arrive : empty.arrives) releasers |= arrive.threads;
      for (int group = 0; group < 1024; group += 128) {
        const ThreadSet mask = ThreadSet().set() >> (1024 - 128) << group;
        if ((consumers & mask).none() || (releasers & mask).any()) continue;
        return ErrorAt(load, "release", "of the threads that wait at @", full_name,
                       ", none of warps ", group / 32, " to ", group / 32 + 3, " arrives at @",
                       name, " before this fills again what they read");
      }
    }
  }
}

void UnitVerifier::CheckUnitsEnd() {
  for (const auto& [name, barriers] : mbarriers_) {
    const std::optional<ThreadSet> arriving = Together(barriers.arrives);
    if (!barriers.waits.empty() && barriers.arrives.empty()) {
      ErrorAt(barriers.waits[0], "arrive", "nothing ever arrives at @", name);
    } else if (!AllKnown(barriers.arrives)) {
      // reported where it stands
    } else if (!barriers.arrives.empty() && !arriving) {
      ErrorAt(barriers.arrives[0], "arrive", "a thread arrives at @", name,
              " here with some threads and elsewhere with others");
    } else if (!barriers.arrives.empty() && static_cast<int>(arriving->count()) != barriers.count) {
      ErrorAt(barriers.arrives[0], "arrive", arriving->count(), " threads arrive at @", name,
              ", its init counts ", barriers.count);
    }
    for (const Event& load : barriers.loads) {
      const bool told =
          std::any_of(barriers.arrives.begin(), barriers.arrives.end(), [&](const Event& arrive) {
            return As<MbarrierArrive>(arrive.nest.back())->bytes > 0 &&
                   arrive.nest.size() <= load.nest.size() &&
                   std::equal(arrive.nest.begin(), arrive.nest.end() - 1, load.nest.begin());
          });
      if (!told) ErrorAt(load, "bytes", "no arrive beside it expects these bytes at @", name);
    }
    if (!barriers.arrives.empty() && AllKnown(barriers.arrives)) CheckRelease(name, barriers);
  }
  for (const auto& [id, meetings] : meetings_) {
    const std::optional<ThreadSet> threads = Together(meetings.events);
    if (!AllKnown(meetings.events)) continue;
    if (!threads || static_cast<int>(threads->count()) != meetings.threads) {
      ErrorAt(meetings.events[0], "named", "barrier ", id, " of ", meetings.threads,
              " threads is reached by ",
              threads ? Cat(threads->count()) : std::string("groups that overlap"));
    }
  }
  // Committed and waited for in the body that holds the store, or in one round it.
  const auto within = [](const std::vector<std::vector<Stmt>>& places, const Event& store) {
    return std::any_of(places.begin(), places.end(), [&](const std::vector<Stmt>& place) {
      return place.size() <= store.nest.size() &&
             std::equal(place.begin(), place.end() - 1, store.nest.begin());
    });
  };
  for (const Event& store : stores_) {
    if (!within(commits_, store)) ErrorAt(store, "bulk", "the store is never committed");
    if (!within(store_waits_, store)) ErrorAt(store, "bulk", "the store is never waited for");
  }
}

}  // namespace hackc::ir
