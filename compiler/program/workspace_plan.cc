// SPDX-License-Identifier: MIT
#include "compiler/program/workspace_plan.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace hackc::program {
namespace {

// What cudaMalloc and torch give, and no kernel asks for more.
constexpr int64_t kSlotAlignment = 256;

struct Life {
  int group = 0;
  int first = std::numeric_limits<int>::max();
  int last = -1;
  DimExpr bytes;
  int64_t most_bytes = 0;
};

struct Slot {
  DimExpr bytes;
  int64_t most_bytes = 0;
  int busy_until = -1;
};

// Lives in order of their beginning. Launches are numbered in order; a repeated section counts
// once.
std::vector<Life> FindLives(const Flow& flow, const std::vector<int>& groups) {
  std::map<int, Life> lives;
  auto touch = [&](int value, int time) {
    const FlowValue& v = flow.values[value];
    if (v.kind != Buffer::Kind::kWorkspace) return;
    Life& life = lives[groups[value]];
    life.group = groups[value];
    life.first = std::min(life.first, time);
    life.last = std::max(life.last, time);
    life.bytes = Max(life.bytes, Mul(Product(v.type.shape), Constant(ir::SizeOf(v.type.dtype))));
  };
  int time = 0;
  for (const FlowSection& section : flow.sections) {
    const int begin = time, end = time + static_cast<int>(section.launches.size());
    for (const FlowLaunch& launch : section.launches) {
      for (int arg : launch.args) {
        bool from_outside = section.count > 1 && flow.values[arg].section == -1;
        touch(arg, time);
        if (from_outside) touch(arg, end);
      }
      ++time;
    }
    for (const FlowCarry& carry : section.carries) {
      touch(carry.inside, begin);
      touch(carry.inside, end);
    }
    time = end + 1;
  }
  std::vector<Life> ordered;
  for (auto& [group, life] : lives) {
    life.most_bytes = AtMaximum(life.bytes, flow.symbols);
    ordered.push_back(std::move(life));
  }
  absl::c_stable_sort(ordered, [](const Life& a, const Life& b) { return a.first < b.first; });
  return ordered;
}

// The free slot that fits best: the smallest that is large enough, else the largest.
Slot* BestSlot(std::vector<Slot>& slots, const Life& life) {
  Slot* best = nullptr;
  for (Slot& slot : slots) {
    if (slot.busy_until >= life.first) continue;
    bool fits = slot.most_bytes >= life.most_bytes;
    bool best_fits = best != nullptr && best->most_bytes >= life.most_bytes;
    bool smaller = best != nullptr && slot.most_bytes < best->most_bytes;
    if (best == nullptr || (fits && !best_fits) || (fits == best_fits && fits == smaller))
      best = &slot;
  }
  return best;
}

}  // namespace

WorkspacePlan PlanWorkspace(const Flow& flow, const std::vector<int>& groups) {
  std::set<int> returned;
  for (int output : flow.outputs) returned.insert(groups[output]);
  std::vector<Slot> slots;
  std::map<int, size_t> chosen;
  for (const Life& life : FindLives(flow, groups)) {
    if (returned.count(life.group)) continue;
    Slot* slot = BestSlot(slots, life);
    if (slot == nullptr) slot = &slots.emplace_back();
    slot->bytes = Max(std::move(slot->bytes), life.bytes);
    slot->most_bytes = std::max(slot->most_bytes, life.most_bytes);
    slot->busy_until = life.last;
    chosen[life.group] = static_cast<size_t>(slot - slots.data());
  }
  WorkspacePlan plan;
  std::vector<DimExpr> offsets;
  for (Slot& slot : slots) {
    offsets.push_back(plan.total_bytes);
    plan.total_bytes =
        Add(std::move(plan.total_bytes), RoundUp(std::move(slot.bytes), kSlotAlignment));
  }
  for (const auto& [group, slot] : chosen) plan.offsets[group] = offsets[slot];
  return plan;
}

}  // namespace hackc::program
