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
  static const Block kNone;
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
      int64_t box = SizeOf(target->dtype);
      for (int extent : map->box) box *= extent;
      bytes += box;
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
  const auto after = [&](const std::vector<std::vector<Stmt>>& places,
                         const std::vector<Stmt>& store) {
    return std::any_of(places.begin(), places.end(), [&](const std::vector<Stmt>& place) {
      return place.size() <= store.size() &&
             std::equal(place.begin(), place.end() - 1, store.begin());
    });
  };
  for (const std::vector<Stmt>& store : stores_) {
    if (!after(commits_, store)) ErrorAt({store, {}, true}, "bulk", "the store is never committed");
    if (!after(store_waits_, store))
      ErrorAt({store, {}, true}, "bulk", "the store is never waited for");
  }
}

// ---- bulk copies ------------------------------------------------------------------------------------
void UnitVerifier::DeclareMaps() {
  std::set<std::string> names;
  const SourceLine launch = line_;
  for (const BulkMap& map : kernel_.maps) {
    line_ = map.line;
    const NameInfo* buffer = Find(map.buffer);
    const auto bad = [&](const auto&... parts) {
      Error("map", "tensor map @", map.name, ": ", parts...);
    };
    if (Find(map.name) || !names.insert(map.name).second) bad("the name is taken");
    if (!buffer || buffer->kind != NameInfo::Kind::kGlobal) {
      bad("@", map.buffer, " is no buffer");
      continue;
    }
    const size_t rank = map.dims.size();
    if (rank < 1 || rank > 5 || map.strides.size() != rank - 1 || map.box.size() != rank) {
      bad(rank, " dims, ", map.strides.size(), " strides, box of ", map.box.size(),
          "; expected 1 to 5, one less, as many");
      continue;
    }
    const int size = SizeOf(buffer->dtype);
    for (int extent : map.box) {
      if (extent < 1 || extent > 256) bad("a box extent of ", extent, ", expected 1 to 256");
    }
    const int row = map.box.back() * size;
    const bool swizzles = map.swizzle == 32 || map.swizzle == 64 || map.swizzle == 128;
    if (!swizzles && map.swizzle != 0) {
      bad("a swizzle of ", map.swizzle, " bytes, expected 0, 32, 64 or 128");
    } else if (row % 16 != 0 || (swizzles && row != map.swizzle)) {
      bad("a box with rows of ", row, " bytes, expected ",
          swizzles ? Cat("the ", map.swizzle, " of its swizzle") : std::string("a multiple of 16"));
    }
    Expr last = IntLit(0), elements = IntLit(1);
    for (size_t i = 0; i < rank; ++i) {
      Expression(map.dims[i], "dim", DType::kI32);
      if (i + 1 < rank) Expression(map.strides[i], "stride", DType::kI32);
      const Expr stride = i + 1 < rank ? map.strides[i] : IntLit(1);
      if (!map.dims[i] || !stride) break;
      if (i + 1 < rank && !Divides(stride * size, 16))
        bad("stride `", Print(stride), "` is not provably a multiple of 16 bytes");
      if (!prover_.Less(IntLit(0), map.dims[i]) || !prover_.NonNegative(stride))
        bad("dim `", Print(map.dims[i]), "` or its stride is not provably positive");
      last = last + (map.dims[i] - 1) * stride;
    }
    for (const Expr& extent : buffer->extents) elements = elements * extent;
    if (!prover_.Less(last, elements)) bad("it is not provably within @", map.buffer);
  }
  line_ = launch;
}

const BulkMap* UnitVerifier::FindMap(const std::string& name) const {
  for (const BulkMap& map : kernel_.maps) {
    if (map.name == name) return &map;
  }
  return nullptr;
}

bool UnitVerifier::Reaches(const std::string& name, const std::vector<Expr>& indices,
                           int64_t reach) {
  const Alloc& alloc = *Find(name)->alloc;
  const std::vector<int64_t> strides = Strides(alloc);
  Expr last = IntLit(reach);
  for (size_t i = 0; i < indices.size(); ++i) last = last + indices[i] * strides[i];
  return prover_.Less(last, IntLit(ElementCount(alloc)));
}

void UnitVerifier::CheckBox(const std::string& map_name, const std::vector<Expr>& coordinates,
                            const std::string& memory, const std::vector<Expr>& indices,
                            bool load) {
  if (const auto threads = Threads(); !threads || threads->count() != 1) {
    Error("bulk", threads ? Cat(threads->count()) : std::string("unknown"),
          " threads issue the copy, expected one");
  }
  for (const Expr& coordinate : coordinates) Expression(coordinate, "coordinate", DType::kI32);
  const BulkMap* map = FindMap(map_name);
  if (!map) return Error("bulk", "@", map_name, " is no tensor map");
  if (coordinates.size() != map->dims.size())
    return Error("bulk", coordinates.size(), " coordinates, @", map_name, " has ",
                 map->dims.size());
  const NameInfo* buffer = Memory(map->buffer, load, !load);
  const NameInfo* info = Memory(memory, !load, load);
  if (!info || !buffer) return;
  if (!IsIn(MemorySpace::kShared, memory) || info->dtype != buffer->dtype)
    return Error("bulk", "@", memory, " is not shared memory of ", Name(buffer->dtype));
  CheckAccess(memory, indices, 1);
  if (indices.size() != info->extents.size()) return;
  int64_t elements = 1;
  for (int extent : map->box) elements *= extent;
  CheckAligned("bulk", memory, indices,
               IsPowerOfTwo(map->swizzle) ? std::max(128, 8 * map->swizzle) : 128);
  if (!Reaches(memory, indices, elements - 1))
    Error("bulk", "the box of ", elements, " elements is not provably within @", memory);
}

void UnitVerifier::CheckUnit(const BulkLoad& n) {
  CheckBox(n.map, n.coordinates, n.target, n.target_indices, true);
  if (Mbarriers* barriers = UseOf(n.barrier, n.barrier_index))
    barriers->loads.push_back({nest_, Threads().value_or(ThreadSet()), true});
}

void UnitVerifier::CheckUnit(const BulkStore& n) {
  CheckBox(n.map, n.coordinates, n.source, n.source_indices, false);
  stores_.push_back(nest_);
}

void UnitVerifier::CheckUnit(const BulkWait& n) {
  if (n.pending < 0) Error("bulk", "waits for ", n.pending, " pending groups");
  store_waits_.push_back(nest_);
}

// ---- wgmma ------------------------------------------------------------------------------------------
bool UnitVerifier::WholeWarpgroups() {
  const std::optional<ThreadSet> threads = Threads();
  bool whole = threads && kernel_.threads >= 128;
  for (int i = 0; whole && i < 1024; ++i) whole = threads->test(i) == threads->test(i / 128 * 128);
  if (!whole) Error("warpgroup", "only a part of a warpgroup gets here");
  return whole;
}

void UnitVerifier::CheckUnit(const WgmmaWait& n) {
  WholeWarpgroups();
  if (n.pending < 0 || n.pending > 7) Error("wgmma", n.pending, " pending groups, expected 0 to 7");
}

void UnitVerifier::CheckOperand(const std::string& name, const std::vector<Expr>& indices,
                                const OperandLayout& layout, DType dtype, int rows, int depth) {
  const NameInfo* info = Memory(name, true, false);
  CheckAccess(name, indices, layout.swizzle != 0 && layout.major == Major::kK ? depth : 1);
  if (!info || indices.size() != info->extents.size()) return;
  if (!IsIn(MemorySpace::kShared, name) || info->dtype != dtype)
    return Error("wgmma", "@", name, " is not shared memory of ", Name(dtype));
  if (layout.swizzle != 0 && layout.swizzle != 32 && layout.swizzle != 64 && layout.swizzle != 128)
    return Error("wgmma", "a swizzle of ", layout.swizzle, " bytes");
  if (layout.leading % 16 != 0 || layout.stride % 16 != 0 || layout.leading < 0 ||
      layout.stride < 0 || layout.leading >= 1 << 18 || layout.stride >= 1 << 18) {
    return Error("wgmma", "strides of ", layout.leading, " and ", layout.stride,
                 " bytes, expected multiples of 16 below 2^18");
  }
  if (layout.swizzle != 0 && layout.stride % (8 * layout.swizzle) != 0)
    return Error("wgmma", "a stride of ", layout.stride, " bytes breaks the swizzle's pattern");
  CheckAligned("wgmma", name, indices, 16);
  if (layout.swizzle != 0) {  // the pattern starts at the rows' beginning; k may start inside a row
    std::vector<Expr> start = indices;
    start.back() = IntLit(0);
    CheckAligned("wgmma", name, start, 8 * layout.swizzle);
    if (info->alloc->extents.back() * SizeOf(dtype) != layout.swizzle || info->alloc->padding != 0)
      Error("wgmma", "rows of @", name, " do not have the ", layout.swizzle,
            " bytes of the swizzle");
  }
  int64_t bytes = 0;
  for (int row = 0; row < rows; ++row) {
    for (int k = 0; k < depth; ++k)
      bytes = std::max(bytes, OperandByte(layout, SizeOf(dtype), row, k));
  }
  if (!Reaches(name, indices, bytes / SizeOf(dtype)))
    Error("wgmma", "the operand's ", bytes + SizeOf(dtype), " bytes are not provably within @",
          name);
}

void UnitVerifier::CheckUnit(const Wgmma& n) {
  WholeWarpgroups();
  if (n.dtype != DType::kBF16 && n.dtype != DType::kF16 && n.dtype != DType::kF32)
    return Error("wgmma", Name(n.dtype), " operands");
  if (n.n < 8 || n.n > 256 || n.n % 8 != 0)
    return Error("wgmma", "n = ", n.n, ", expected a multiple of 8 up to 256");
  const bool tf32 = n.dtype == DType::kF32;
  if (tf32 && (n.a_major == Major::kMN || n.b_major == Major::kMN))
    Error("wgmma", "tf32 operands are contiguous in k");
  const NameInfo* c = Registers(n.accumulator, n.accumulator_index, n.n / 2);
  if (c && c->dtype != DType::kF32)
    Error("wgmma", "accumulator @", n.accumulator, " is ", Name(c->dtype));
  Condition(n.reset);
  if (Dependence(n.reset) != Varies::kNever) Error("wgmma", "`reset` differs between threads");
  if (IsIn(MemorySpace::kLocal, n.a)) {
    const NameInfo* a =
        Registers(n.a, n.a_indices.empty() ? nullptr : n.a_indices[0], tf32 ? 4 : 8);
    if (a && a->dtype != n.dtype) Error("wgmma", "a fragment of ", Name(a->dtype));
    if (n.a_major != Major::kK) Error("wgmma", "a fragment has no order of its own");
  } else {
    CheckOperand(n.a, n.a_indices, LayoutOfA(n), n.dtype, 64, DepthOf(n));
  }
  CheckOperand(n.b, n.b_indices, LayoutOfB(n), n.dtype, n.n, DepthOf(n));
}

void UnitVerifier::CheckUnit(const AtomicAdd& n) {
  Condition(n.guard);
  prover_.Assume(n.guard);
  const NameInfo* info = Memory(n.buffer, true, true);
  CheckAccess(n.buffer, n.indices, 1);
  Expression(n.value, "value", DType::kF32);
  if (info && (info->dtype != DType::kF32 || info->IsIn(MemorySpace::kLocal)))
    Error("atomic", "@", n.buffer, " is not float32 in global or shared memory");
}

}  // namespace hackc::ir
