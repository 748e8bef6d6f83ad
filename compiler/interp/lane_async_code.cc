// SPDX-License-Identifier: MIT
// Statements of warps that run on their own, and of the units beside them (warp_block.h).
#include <algorithm>

#include "compiler/interp/lane_code.h"
#include "compiler/interp/warp_matrix.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/ir/wgmma_layout.h"

namespace hackc::interp {

Accessor LaneState::AtWarp(int lane) const { return warps->At(lane, block); }

bool NeedsWarps(const ir::Block& body) {
  bool needs = false;
  ir::WalkStmts(body, [&](const ir::Stmt& s) {
    needs = needs || ir::As<ir::Role>(s) || ir::As<ir::NamedBarrier>(s) ||
            ir::As<ir::MbarrierInit>(s) || ir::As<ir::ProxyFence>(s) || ir::As<ir::BulkStore>(s) ||
            ir::As<ir::Wgmma>(s);
    needs = needs ||
            (ir::As<ir::Alloc>(s) && ir::As<ir::Alloc>(s)->space == ir::MemorySpace::kMbarrier);
  });
  return needs;
}

void LaneCode::RunBlock(const LaneBlock& body, const Active& all) {
  if (!state_.warps) return Run(body, all);
  // What belongs to one warp: values that its lanes share, and where it stands.
  struct Private {
    std::vector<Cell> uniform;
    std::vector<const ir::StmtNode*> path;
  };
  std::vector<std::vector<Cell>*> uniform;
  for (std::vector<Cell>& slot : state_.slots) {
    if (slot.size() == 1) uniform.push_back(&slot);
  }
  Private first;
  for (const std::vector<Cell>* slot : uniform) first.uniform.push_back((*slot)[0]);
  std::vector<Private> warps(state_.lanes / 32, first);
  WarpHooks hooks;
  hooks.swap = [&](int warp) {
    for (size_t i = 0; i < uniform.size(); ++i) std::swap((*uniform[i])[0], warps[warp].uniform[i]);
    path_.swap(warps[warp].path);
  };
  hooks.path = [&](int warp) {
    std::string text;
    for (const ir::StmtNode* node : warps[warp].path)
      text += Cat(text.empty() ? "" : " / ", ir::PathName(*node));
    return text;
  };
  state_.warps->Run(hooks, [&](int warp) {
    Run(body, Active(all.begin() + warp * 32, all.begin() + warp * 32 + 32));
  });
}

LaneCode::Runner LaneCode::CompileOne(const ir::Role& n) {
  auto body = std::make_shared<LaneBlock>(Compile(n.body));
  return [this, body, first = n.first, last = n.first + n.warps - 1](const Active& active) {
    Active mine;
    std::copy_if(active.begin(), active.end(), std::back_inserter(mine),
                 [&](int lane) { return lane / 32 >= first && lane / 32 <= last; });
    if (!mine.empty()) Run(*body, mine);
  };
}

LaneCode::Runner LaneCode::CompileOne(const ir::NamedBarrier& n) {
  if (n.id < 1 || n.id > 15) Fail("named_barrier ", n.id, ", expected 1 to 15");
  return [this, n](const Active& active) { state_.warps->Barrier(n.id, n.threads, active); };
}

LaneCode::Runner LaneCode::CompileOne(const ir::ProxyFence&) {
  return [this](const Active& active) { state_.warps->ProxyFence(active); };
}

LaneMemory* LaneCode::Mbarriers(const std::string& name) { return &names_.Memory(state_, name); }

LaneCode::Runner LaneCode::CompileOne(const ir::MbarrierInit& n) {
  return [this, memory = Mbarriers(n.barrier), count = n.count](const Active& active) {
    if (active[0] == 0) state_.warps->Init(*memory, count);
  };
}

LaneCode::Runner LaneCode::CompileOne(const ir::MbarrierArrive& n) {
  Address barrier = AddressOf(n.barrier, {n.index});
  return [this, barrier, bytes = n.bytes](const Active& active) {
    const std::vector<int64_t>& at = Offsets(barrier, active, 1);
    for (int lane : active) state_.warps->Arrive(*barrier.memory, at[lane], lane, bytes);
  };
}

LaneCode::Runner LaneCode::CompileOne(const ir::MbarrierWait& n) {
  Address barrier = AddressOf(n.barrier, {n.index});
  auto parity = Expression(n.parity);
  return [this, barrier, parity](const Active& active) {
    const std::vector<int64_t> at = Offsets(barrier, active, 1);
    std::vector<int64_t> parities(state_.lanes);
    Values values = parity->Eval(state_, active);
    for (int lane : active) parities[lane] = values[lane].i;
    state_.warps->Wait(*barrier.memory, at, parities, active);
  };
}

LaneCode::Runner LaneCode::CompileOne(const ir::AtomicAdd& n) {
  Address target = AddressOf(n.buffer, n.indices);
  auto value = Expression(n.value), guard = Expression(n.guard);
  if (target.memory->dtype() != ir::DType::kF32 || !value->is_float())
    Fail("atomic_add of ", ir::Name(target.memory->dtype()));
  return [this, target, value, guard](const Active& all) {
    Active storage;
    const Active& active = Filter(guard.get(), state_, all, storage);
    Values values = value->Eval(state_, active);
    const std::vector<int64_t>& offsets = Offsets(target, active, 1);
    const bool single = state_.arithmetic != Arithmetic::kExact;
    for (int lane : active)
      target.memory->AtomicAdd(offsets[lane], values[lane].f, single, state_.At(lane));
  };
}

// ---- bulk copies --------------------------------------------------------------------------------
const BoundMap* LaneCode::MapOf(const std::string& name, size_t coordinates) {
  const auto found = maps_.find(name);
  if (found == maps_.end()) Fail("@", name, " is no tensor map");
  if (found->second.dims.size() != coordinates)
    Fail("@", name, ": ", coordinates, " coordinates of ", found->second.dims.size());
  return &found->second;
}

template <typename Visit>
void LaneCode::ForEachInBox(const BoundMap& map, const std::vector<int64_t>& coordinates,
                            const LaneMemory& memory, int64_t offset, Visit visit) {
  const size_t rank = map.dims.size();
  const int size = ir::SizeOf(memory.dtype());
  const int64_t row = int64_t{map.box[rank - 1]} * size;
  if (memory.dtype() != map.buffer->dtype()) Fail("tensor map and memory differ in dtype");
  if (row % 16 != 0 || (map.swizzle != 0 && row != map.swizzle))
    Fail("a box with rows of ", row, " bytes, swizzle ", map.swizzle);
  memory.CheckAligned(offset, std::max(128, 8 * map.swizzle));
  int64_t count = 1;
  for (int extent : map.box) {
    if (extent < 1 || extent > 256) Fail("a box extent of ", extent, ", expected 1 to 256");
    count *= extent;
  }
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, from = 0;
    bool inside = true;
    for (size_t d = rank; d-- > 0;) {
      const int64_t at = coordinates[d] + rest % map.box[d];
      rest /= map.box[d];
      inside = inside && at >= 0 && at < map.dims[d];
      from += at * map.strides[d];
    }
    const int64_t byte = ir::Swizzle(memory.byte_base() + (offset + i) * size, map.swizzle);
    const int64_t to = (byte - memory.byte_base()) / size;
    if (to < 0 || to >= memory.count()) Fail("the box reaches outside @", memory.name());
    visit(inside ? from : -1, to);
  }
}

LaneCode::Runner LaneCode::CompileOne(const ir::BulkLoad& n) {
  Address target = AddressOf(n.target, n.target_indices),
          barrier = AddressOf(n.barrier, {n.barrier_index});
  const BoundMap* map = MapOf(n.map, n.coordinates.size());
  std::vector<std::shared_ptr<LaneExpr>> coordinates;
  for (const ir::Expr& e : n.coordinates) coordinates.push_back(Expression(e));
  return [this, target, barrier, map, coordinates](const Active& active) {
    if (active.size() != 1) Fail("bulk_load by ", active.size(), " threads of a warp");
    const int lane = active[0];
    std::vector<int64_t> at;
    for (const auto& e : coordinates) at.push_back(e->Eval(state_, active)[lane].i);
    std::vector<WarpBlock::Element> elements;
    ForEachInBox(*map, at, *target.memory, Offsets(target, active, 1)[lane],
                 [&](int64_t from, int64_t to) {
                   Cell value = map->buffer->is_float() ? Cell{.f = 0} : Cell{.i = 0};
                   if (from >= 0) value = map->buffer->Read(from, state_.At(lane));
                   elements.push_back({to, value});
                 });
    state_.warps->Load(*target.memory, std::move(elements), *barrier.memory,
                       Offsets(barrier, active, 1)[lane], lane, state_.block);
  };
}

LaneCode::Runner LaneCode::CompileOne(const ir::BulkStore& n) {
  Address source = AddressOf(n.source, n.source_indices);
  const BoundMap* map = MapOf(n.map, n.coordinates.size());
  std::vector<std::shared_ptr<LaneExpr>> coordinates;
  for (const ir::Expr& e : n.coordinates) coordinates.push_back(Expression(e));
  return [this, source, map, coordinates](const Active& active) {
    if (active.size() != 1) Fail("bulk_store by ", active.size(), " threads of a warp");
    const int lane = active[0];
    std::vector<int64_t> at;
    for (const auto& e : coordinates) at.push_back(e->Eval(state_, active)[lane].i);
    state_.warps->StartStore(lane);
    const Accessor read = state_.warps->StoreAccess(lane, state_.block, false),
                   write = state_.warps->StoreAccess(lane, state_.block, true);
    ForEachInBox(*map, at, *source.memory, Offsets(source, active, 1)[lane],
                 [&](int64_t to, int64_t from) {
                   if (to >= 0) map->buffer->Write(to, source.memory->Read(from, read), write);
                 });
  };
}

LaneCode::Runner LaneCode::CompileOne(const ir::BulkCommit&) {
  return [this](const Active& active) {
    for (int lane : active) state_.warps->CommitStores(lane);
  };
}

LaneCode::Runner LaneCode::CompileOne(const ir::BulkWait& n) {
  return [this, n](const Active& active) {
    for (int lane : active) state_.warps->WaitForStores(lane, n.pending, n.read);
  };
}

// ---- wgmma --------------------------------------------------------------------------------------
template <typename Body>
LaneCode::Runner LaneCode::ByWarp(const char* what, Body body) {
  return [what, body](const Active& active) {
    for (int first : WholeWarps(active, what)) body(first / 32);
  };
}

LaneCode::Runner LaneCode::CompileOne(const ir::WgmmaFence&) {
  return ByWarp("wgmma_fence", [this](int warp) { state_.warps->FenceWgmma(warp); });
}

LaneCode::Runner LaneCode::CompileOne(const ir::WgmmaCommit&) {
  return ByWarp("wgmma_commit", [this](int warp) { state_.warps->CommitWgmma(warp); });
}

LaneCode::Runner LaneCode::CompileOne(const ir::WgmmaWait& n) {
  return ByWarp("wgmma_wait", [this, pending = n.pending](int warp) {
    state_.warps->WaitForWgmma(warp, pending);
  });
}

LaneCode::Runner LaneCode::CompileOne(const ir::Wgmma& n) {
  Address c = AddressOf(n.accumulator, {n.accumulator_index}), a = AddressOf(n.a, n.a_indices),
          b = AddressOf(n.b, n.b_indices);
  auto reset = Expression(n.reset);
  const bool shared_a = a.memory->space() == LaneMemory::Space::kShared;
  const int a_count = n.dtype == ir::DType::kF32 ? 4 : 8;
  if (n.n < 8 || n.n > 256 || n.n % 8 != 0) Fail("wgmma with n = ", n.n);
  if (a.memory->dtype() != n.dtype || b.memory->dtype() != n.dtype ||
      c.memory->dtype() != ir::DType::kF32 || b.memory->space() != LaneMemory::Space::kShared) {
    Fail("wgmma of ", ir::Name(n.dtype), " with a operand of another dtype or place");
  }
  return [this, n, c, a, b, reset, shared_a, a_count](const Active& active) {
    const int warp = WholeWarps(active, "wgmma")[0] / 32;
    const int first = active[0];
    const auto common = [&](const Address& address, int width, const char* what) {
      const std::vector<int64_t>& at = Offsets(address, active, width);
      for (int lane : active) {
        if (at[lane] != at[first]) Fail("wgmma: ", what, " differs between the lanes of a warp");
      }
      return at[first];
    };
    const int64_t at_c = common(c, n.n / 2, "the accumulator"),
                  at_a = common(a, shared_a ? 1 : a_count, "a"), at_b = common(b, 1, "b");
    const bool clear = reset && reset->Eval(state_, active)[first].i != 0;
    state_.warps->Together(warp, &n, {at_c, at_a, at_b, clear}, [&] {
      WgmmaOfWarpgroup(n, warp / 4, {*c.memory, at_c}, {*a.memory, at_a}, {*b.memory, at_b}, clear,
                       state_);
    });
  };
}

}  // namespace hackc::interp
