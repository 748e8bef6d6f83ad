// SPDX-License-Identifier: MIT
#include "compiler/interp/lane_code.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/interp/warp_matrix.h"
#include "compiler/support/saturate.h"

namespace hackc::interp {
namespace {

constexpr int64_t kMaxStates = 1 << 24;  // of all lanes

// state = state combined with one lifted operand (the monoid's algebra is in ir/monoid.h).
void Combine(ir::Monoid monoid, Arithmetic arithmetic, const double* operands, double* s) {
  auto round = [&](double value) { return RoundResult(arithmetic, ir::DType::kF32, value); };
  const double x = operands[0];
  switch (monoid) {
    case ir::Monoid::kSum: s[0] = round(s[0] + x); return;
    case ir::Monoid::kProduct: s[0] = round(s[0] * x); return;
    case ir::Monoid::kMax: s[0] = std::fmax(s[0], x); return;
    case ir::Monoid::kMin: s[0] = std::fmin(s[0], x); return;
    case ir::Monoid::kLogSumExp:
    case ir::Monoid::kSoftmaxSum: {
      if (x == -std::numeric_limits<double>::infinity()) return;  // a score of weight 0
      const double maximum = std::fmax(s[0], x);
      const double keep = round(std::exp(round(s[0] - maximum)));
      const double weight = round(std::exp(round(x - maximum)));
      s[1] = round(round(s[1] * keep) + weight);
      if (monoid == ir::Monoid::kSoftmaxSum)
        s[2] = round(round(s[2] * keep) + round(weight * operands[1]));
      s[0] = maximum;
      return;
    }
  }
}

}  // namespace

LaneCode::LaneCode(LaneState& state, Names& names, const ir::Block& body)
    : state_(state), names_(names), shared_layout_(ir::LayoutShared(body)), copies_(state.lanes) {}

int LaneCode::AddSlot(const std::string& name, bool uniform) {
  state_.slots.emplace_back(uniform ? 1 : state_.lanes);
  const int index = static_cast<int>(state_.slots.size()) - 1;
  if (!name.empty()) names_.bindings[name] = {Names::Binding::Kind::kSlot, index, uniform};
  return index;
}

LaneBlock LaneCode::Compile(const ir::Block& block) {
  LaneBlock out;
  for (const ir::Stmt& s : block) {
    path_.push_back(s.get());
    if (path_.size() > 64) Fail("statements nested more than 64 deep");
    out.push_back({s, std::visit([&](const auto& n) { return CompileOne(n); }, s->node)});
    path_.pop_back();
  }
  return out;
}

void LaneCode::Run(const LaneBlock& block, const Active& active) {
  for (const LaneStmt& s : block) {
    path_.push_back(s.source.get());
    s.run(active);
    path_.pop_back();
  }
}

void LaneCode::StartBlock() { copies_.assign(state_.lanes, CopyQueue()); }

std::shared_ptr<LaneExpr> LaneCode::Expression(const ir::Expr& e) {
  return LaneExpr::Compile(e, names_, state_);
}

LaneCode::Address LaneCode::AddressOf(const std::string& memory,
                                      const std::vector<ir::Expr>& indices) {
  if (indices.size() > kMaxRank) Fail("more than ", kMaxRank, " indices");
  Address address{
      &names_.Memory(state_, memory), {}, std::make_shared<std::vector<int64_t>>(state_.lanes)};
  for (const ir::Expr& index : indices) address.indices.push_back(Expression(index));
  return address;
}

const std::vector<int64_t>& LaneCode::Offsets(const Address& address, const Active& active,
                                              int width) {
  const size_t rank = address.indices.size();
  Values values[kMaxRank];
  int64_t indices[kMaxRank];
  for (size_t i = 0; i < rank; ++i) values[i] = address.indices[i]->Eval(state_, active);
  for (int lane : active) {
    for (size_t i = 0; i < rank; ++i) indices[i] = values[i][lane].i;
    (*address.offsets)[lane] = address.memory->Offset(indices, rank, width);
  }
  return *address.offsets;
}

LaneCode::Runner LaneCode::CompileOne(const ir::For& n) {
  auto extent = Expression(n.extent);
  const int slot = AddSlot(n.axis, true);
  auto body = std::make_shared<LaneBlock>(Compile(n.body));
  return [this, extent, slot, body](const Active& active) {
    Values extents = extent->Eval(state_, active);
    if (extent->uniform()) {
      const int64_t count = extents[0].i;
      for (int64_t i = 0; i < count; ++i) {
        state_.slots[slot][0].i = i;
        Run(*body, active);
      }
      return;
    }
    std::vector<int64_t> trips(state_.lanes);
    int64_t longest = 0;
    bool same = true;
    for (int lane : active) {
      trips[lane] = extents[lane].i;
      longest = std::max(longest, trips[lane]);
      same = same && trips[lane] == trips[active[0]];
    }
    for (int64_t i = 0; i < longest; ++i) {
      state_.slots[slot][0].i = i;
      if (same) {
        Run(*body, active);
        continue;
      }
      Active left;
      std::copy_if(active.begin(), active.end(), std::back_inserter(left),
                   [&](int lane) { return i < trips[lane]; });
      Run(*body, left);
    }
  };
}

LaneCode::Runner LaneCode::CompileOne(const ir::Let& n) {
  auto value = Expression(n.value);
  const int slot = AddSlot(n.name, value->uniform());
  return [this, value, slot](const Active& active) {
    Values values = value->Eval(state_, active);
    std::vector<Cell>& cells = state_.slots[slot];
    if (value->uniform()) {
      cells[0] = values[0];
    } else {
      for (int lane : active) cells[lane] = values[lane];
    }
  };
}

LaneCode::Runner LaneCode::CompileOne(const ir::Accumulator& n) {
  LaneAccumulator acc{n.name, n.monoid, {}};
  for (const ir::Expr& extent : n.extents) {
    auto value = Expression(extent);
    if (!value->uniform()) Fail("extent ", Print(extent), " is not static");
    acc.extents.push_back(value->Eval(state_, {0})[0].i);
    if (acc.extents.back() < 1 || acc.extents.back() > (1 << 24))
      Fail("extent ", acc.extents.back());
    acc.count = SaturatedProduct(acc.count, acc.extents.back());
  }
  if (acc.count > kMaxStates / state_.lanes)
    Fail("accumulator ", n.name, ": more than ", kMaxStates / state_.lanes, " elements");
  const std::vector<double> identity = ir::Identity(n.monoid);
  acc.components = static_cast<int>(identity.size());
  acc.states.resize(acc.count * acc.components * state_.lanes);
  state_.accumulators.push_back(std::move(acc));
  const int index = static_cast<int>(state_.accumulators.size()) - 1;
  names_.bindings[n.name] = {Names::Binding::Kind::kAccumulator, index, false};
  LaneAccumulator* made = &state_.accumulators.back();
  return [made, identity](const Active& active) {
    for (int lane : active) {
      for (int64_t i = 0; i < made->count; ++i)
        std::copy(identity.begin(), identity.end(), made->State(lane, i));
    }
  };
}

template <typename Body>
LaneCode::Runner LaneCode::Guarded(const ir::Expr& guard, Body body) {
  return [this, guard = Expression(guard), body](const Active& all) {
    Active storage;
    const Active& active = Filter(guard.get(), state_, all, storage);
    if (!active.empty()) body(active);
  };
}

template <typename Change>
LaneCode::Runner LaneCode::ChangeStates(const std::string& accumulator,
                                        const std::vector<ir::Expr>& indices,
                                        const std::vector<ir::Expr>& operands,
                                        const ir::Expr& guard, Change change) {
  if (indices.size() > kMaxRank) Fail("more than ", kMaxRank, " indices");
  LaneAccumulator* acc = &state_.accumulators[names_.Find(accumulator).index];
  std::vector<std::shared_ptr<LaneExpr>> at, values;
  for (const ir::Expr& e : indices) at.push_back(Expression(e));
  for (const ir::Expr& e : operands) values.push_back(Expression(e));
  return Guarded(guard, [this, acc, at, values, change](const Active& active) {
    Values positions[kMaxRank], lifted[2];
    for (size_t i = 0; i < at.size(); ++i) positions[i] = at[i]->Eval(state_, active);
    for (size_t i = 0; i < values.size(); ++i) lifted[i] = values[i]->Eval(state_, active);
    int64_t index[kMaxRank];
    double operand[2] = {};
    for (int lane : active) {
      for (size_t i = 0; i < at.size(); ++i) index[i] = positions[i][lane].i;
      for (size_t i = 0; i < values.size(); ++i) operand[i] = lifted[i][lane].f;
      change(acc->State(lane, acc->Offset(index, at.size())), operand);
    }
  });
}

LaneCode::Runner LaneCode::CompileOne(const ir::Accumulate& n) {
  const Names::Binding& binding = names_.Find(n.name);
  if (binding.kind != Names::Binding::Kind::kAccumulator)
    Fail("`", n.name, "` is not an accumulator");
  const ir::Monoid monoid = state_.accumulators[binding.index].monoid;
  if (static_cast<int>(n.operands.size()) != ir::OperandCount(monoid)) {
    Fail("monoid ", ir::Name(monoid), " takes ", ir::OperandCount(monoid), " operands, got ",
         n.operands.size());
  }
  return ChangeStates(n.name, n.indices, n.operands, n.guard,
                      [this, monoid](double* state, const double* operands) {
                        Combine(monoid, state_.arithmetic, operands, state);
                      });
}

LaneCode::Runner LaneCode::CompileOne(const ir::Store& n) {
  if (const Names::Binding& binding = names_.Find(n.buffer);
      binding.kind == Names::Binding::Kind::kAccumulator) {
    // A state overwritten with a value, as if only that had been combined into it.
    const int components = state_.accumulators[binding.index].components;
    if (components != 1) Fail("a state of ", components, " components is overwritten");
    return ChangeStates(n.buffer, n.indices, {n.value}, n.guard,
                        [](double* state, const double* value) { *state = *value; });
  }
  Address target = AddressOf(n.buffer, n.indices);
  auto value = Expression(n.value);
  if (value->is_float() != target.memory->is_float())
    Fail("value ", ir::Name(n.value->dtype), " does not fit the buffer");
  return Guarded(n.guard, [this, target, value](const Active& active) {
    Values values = value->Eval(state_, active);
    const std::vector<int64_t>& offsets = Offsets(target, active, 1);
    for (int lane : active) {
      Cell cell = values[lane];
      if (target.memory->is_float())
        cell.f = RoundStored(state_.arithmetic, target.memory->dtype(), cell.f);
      target.memory->Write(offsets[lane], cell, state_.At(lane));
    }
  });
}

LaneCode::Runner LaneCode::CompileOne(const ir::Alloc& n) {
  const bool shared = n.space != ir::MemorySpace::kLocal;
  const auto space = shared ? LaneMemory::Space::kShared : LaneMemory::Space::kLane;
  state_.memories.emplace_back(n.name, n.dtype, space, n.extents, shared ? n.padding : 0,
                               state_.lanes, shared && state_.traced);
  LaneMemory* memory = &state_.memories.back();
  if (const ir::SharedSlot* slot = shared_layout_.Find(n.name); slot && shared)
    memory->set_byte_base(slot->offset);
  names_.bindings[n.name] = {Names::Binding::Kind::kMemory,
                             static_cast<int>(state_.memories.size()) - 1, false};
  if (!state_.warps) return [memory](const Active&) { memory->Poison(); };
  memory->TraceWarps(state_.lanes);
  if (n.space == ir::MemorySpace::kMbarrier) state_.warps->AddMbarriers(*memory);
  if (shared) return [](const Active&) {};  // a warp must not poison what others have filled
  return [memory](const Active& active) {
    for (int lane : active) memory->Poison(lane);
  };
}

// Every "thread" already holds the total: one lane runs the whole tile.
LaneCode::Runner LaneCode::CompileOne(const ir::Combine& n) {
  names_.Find(n.name);
  return [](const Active&) {};
}

LaneCode::Runner LaneCode::CompileOne(const ir::If& n) {
  auto body = std::make_shared<LaneBlock>(Compile(n.then));
  return Guarded(n.condition, [this, body](const Active& active) { Run(*body, active); });
}

std::vector<Cell> LaneCode::ReadVectors(const Address& source, LaneExpr* guard,
                                        const Active& active, int width) {
  Active storage;
  const Active& on = Filter(guard, state_, active, storage);
  const std::vector<int64_t>& from = Offsets(source, on, width);
  const Cell zero = source.memory->is_float() ? Cell{.f = 0} : Cell{.i = 0};
  std::vector<Cell> cells(static_cast<size_t>(state_.lanes) * width, zero);
  for (int lane : on) {
    source.memory->CheckAligned(from[lane], int64_t{width} * ir::SizeOf(source.memory->dtype()));
    for (int i = 0; i < width; ++i)
      cells[lane * width + i] = source.memory->Read(from[lane] + i, state_.At(lane));
  }
  return cells;
}

LaneCode::Runner LaneCode::CompileOne(const ir::VectorLoad& n) {
  Address target = AddressOf(n.target, {n.target_index}), source = AddressOf(n.source, n.indices);
  auto guard = Expression(n.guard);
  if (target.memory->dtype() != source.memory->dtype()) Fail("source and target differ in dtype");
  return [this, target, source, guard, width = n.width](const Active& active) {
    const std::vector<int64_t>& to = Offsets(target, active, width);
    const std::vector<Cell> cells = ReadVectors(source, guard.get(), active, width);
    for (int lane : active) {
      for (int i = 0; i < width; ++i)
        target.memory->Write(to[lane] + i, cells[lane * width + i], state_.At(lane));
    }
  };
}

LaneCode::Runner LaneCode::CompileOne(const ir::VectorStore& n) {
  Address target = AddressOf(n.target, n.indices), source = AddressOf(n.source, {n.source_index});
  if (target.memory->dtype() != source.memory->dtype()) Fail("source and target differ in dtype");
  return Guarded(n.guard, [this, target, source, width = n.width](const Active& active) {
    const std::vector<int64_t>& to = Offsets(target, active, width);
    const std::vector<int64_t>& from = Offsets(source, active, width);
    for (int lane : active) {
      target.memory->CheckAligned(to[lane], int64_t{width} * ir::SizeOf(target.memory->dtype()));
      for (int i = 0; i < width; ++i) {
        target.memory->Write(to[lane] + i, source.memory->Read(from[lane] + i, state_.At(lane)),
                             state_.At(lane));
      }
    }
  });
}

LaneCode::Runner LaneCode::CompileOne(const ir::Barrier&) {
  return [this](const Active& active) {
    if (state_.warps) return state_.warps->Barrier(0, state_.lanes, active);
    if (static_cast<int>(active.size()) != state_.lanes) {
      Fail("barrier reached by ", active.size(), " of ", state_.lanes, " threads");
    }
    ++state_.epoch;
  };
}

LaneCode::Runner LaneCode::CompileOne(const ir::AsyncCopy& n) {
  Address target = AddressOf(n.target, n.target_indices),
          source = AddressOf(n.source, n.source_indices);
  auto guard = Expression(n.guard);
  const int size = ir::SizeOf(target.memory->dtype());
  if (target.memory->dtype() != source.memory->dtype()) Fail("source and target differ in dtype");
  if (n.bytes % size != 0) Fail(n.bytes, " bytes of ", size, "-byte elements");
  return [this, target, source, guard, width = n.bytes / size](const Active& active) {
    const std::vector<int64_t>& to = Offsets(target, active, width);
    const std::vector<Cell> cells = ReadVectors(source, guard.get(), active, width);
    for (int lane : active) {
      target.memory->CheckAligned(to[lane], int64_t{width} * ir::SizeOf(target.memory->dtype()));
      const auto first = cells.begin() + lane * width;
      copies_[lane].open.push_back({target.memory, to[lane], {first, first + width}});
      for (int i = 0; i < width; ++i) target.memory->Launch(to[lane] + i, state_.At(lane));
    }
  };
}

LaneCode::Runner LaneCode::CompileOne(const ir::AsyncCommit&) {
  return [this](const Active& active) {
    for (int lane : active) {
      copies_[lane].groups.push_back(std::move(copies_[lane].open));
      copies_[lane].open.clear();
    }
  };
}

LaneCode::Runner LaneCode::CompileOne(const ir::AsyncWait& n) {
  return [this, pending = n.pending](const Active& active) {
    for (int lane : active) {
      auto& groups = copies_[lane].groups;
      while (static_cast<int>(groups.size()) > pending) {
        for (const Copy& copy : groups.front()) {
          for (size_t i = 0; i < copy.values.size(); ++i) {
            copy.target->Land(copy.offset + static_cast<int64_t>(i), copy.values[i],
                              state_.At(lane));
          }
        }
        groups.pop_front();
      }
    }
  };
}

LaneCode::Runner LaneCode::CompileOne(const ir::LoadMatrix& n) {
  Address target = AddressOf(n.target, {n.target_index}), source = AddressOf(n.source, n.indices);
  return [this, target, source, n](const Active& active) {
    const std::vector<int> warps = WholeWarps(active, "load_matrix");
    Active addressing;  // the lanes whose row address counts
    for (int lane : active) {
      if (lane % 32 < 8 * n.count) addressing.push_back(lane);
    }
    const std::vector<int64_t>& rows = Offsets(source, addressing, 8);
    const std::vector<int64_t>& to = Offsets(target, active, 2 * n.count);
    for (int first : warps) {
      LoadMatrixOfWarp(n, first, *source.memory, rows, *target.memory, to, state_);
    }
  };
}

LaneCode::Runner LaneCode::CompileOne(const ir::Mma& n) {
  Address c = AddressOf(n.accumulator, {n.accumulator_index}), a = AddressOf(n.a, {n.a_index}),
          b = AddressOf(n.b, {n.b_index});
  const MmaLayout layout(n.shape);
  return [this, c, a, b, n, layout](const Active& active) {
    const std::vector<int> warps = WholeWarps(active, "mma");
    const std::vector<int64_t>&at_c = Offsets(c, active, 4),
          &at_a = Offsets(a, active, layout.a_count), &at_b = Offsets(b, active, layout.b_count);
    for (int first : warps) {
      MmaOfWarp(n, layout, first, {*c.memory, at_c}, {*a.memory, at_a}, {*b.memory, at_b}, state_);
    }
  };
}

}  // namespace hackc::interp
