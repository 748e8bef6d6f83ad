// SPDX-License-Identifier: MIT
#include "compiler/interp/warp_block.h"

#include <algorithm>

namespace hackc::interp {
namespace {

void RaiseTo(std::vector<int>& to, const std::vector<int>& from) {
  for (size_t i = 0; i < to.size(); ++i) to[i] = std::max(to[i], from[i]);
}
void LowerTo(std::vector<int>& to, const std::vector<int>& from) {
  for (size_t i = 0; i < to.size(); ++i) to[i] = std::min(to[i], from[i]);
}

}  // namespace

void Order::Join(const Order& other) {
  RaiseTo(seen, other.seen);
  RaiseTo(fenced, other.fenced);
}

void Order::Meet(const Order& other) {
  LowerTo(seen, other.seen);
  LowerTo(fenced, other.fenced);
}

void WarpBlock::Run(WarpHooks hooks, const std::function<void(int warp)>& body) {
  agents_ = store_unit(true) + 1;
  for (auto& [name, barriers] : mbarriers_) agents_ += static_cast<int>(barriers.size());
  int unit = store_unit(true) + 1;
  for (auto& [name, barriers] : mbarriers_) {
    for (Mbarrier& barrier : barriers) {
      barrier = Mbarrier{.unit = unit++, .arrived = NewOrder(), .done = NewOrder()};
    }
  }
  order_.assign(lanes_, NewOrder());
  for (int lane = 0; lane < lanes_; ++lane) order_[lane].seen[lane] = 1;
  fences_.assign(lanes_ / 32, 0);
  meetings_.clear();
  collectives_.clear();
  wgmma_epochs_.assign(lanes_ / 128 + 1, 0);
  wgmma_.assign(lanes_ / 32, {});
  stores_ = 0;
  store_groups_.clear();
  uncommitted_.clear();

  hooks.state = [this] { return StateText(); };
  WarpScheduler scheduler(lanes_ / 32, seed_++, std::move(hooks));
  scheduler_ = &scheduler;
  scheduler.Run(body);
  scheduler_ = nullptr;
  CheckEnd();
}

void WarpBlock::CheckEnd() const {
  for (int lane : uncommitted_) Fail("thread ", lane, " ends before it commits its bulk stores");
  for (const auto& [lane, groups] : store_groups_) {
    if (!groups.empty()) Fail("thread ", lane, " ends while its bulk stores read shared memory");
  }
  for (const auto& [name, barriers] : mbarriers_) {
    for (size_t i = 0; i < barriers.size(); ++i) {
      if (barriers[i].filled > barriers[i].waited)
        Fail("the block ends and nothing has waited at @", name, "[", i, "] for bulk loads");
    }
  }
}

void WarpBlock::Publish(int lane, Order& into) {
  into.Join(order_[lane]);
  ++order_[lane].seen[lane];
}

void WarpBlock::ProxyFence(const Active& active) {
  for (int lane : active) {
    RaiseTo(order_[lane].fenced, order_[lane].seen);
    ++order_[lane].seen[lane];
  }
}

void WarpBlock::Barrier(int id, int threads, const Active& active) {
  scheduler_->Yield();
  WholeWarps(active, id == 0 ? "barrier" : "named_barrier");
  Meeting& meeting = meetings_[id];
  if (meeting.arrived.empty()) {
    meeting.threads = threads;
    meeting.published = NewOrder();
  } else if (meeting.threads != threads) {
    Fail("barrier ", id, " of ", threads, " threads, others wait at it for ", meeting.threads);
  }
  meeting.arrived.insert(meeting.arrived.end(), active.begin(), active.end());
  for (int lane : active) Publish(lane, meeting.published);
  if (static_cast<int>(meeting.arrived.size()) > threads)
    Fail("barrier ", id, " of ", threads, " threads reached by ", meeting.arrived.size());
  if (static_cast<int>(meeting.arrived.size()) == threads) {
    for (int lane : meeting.arrived) order_[lane].Join(meeting.published);
    meeting.arrived.clear();
    ++meeting.rounds;
    return;
  }
  scheduler_->WaitUntil([&meeting, round = meeting.rounds] { return meeting.rounds != round; },
                        [&meeting] {
                          return Cat(meeting.arrived.size(), " of ", meeting.threads,
                                     " threads have arrived");
                        });
}

void WarpBlock::Init(const LaneMemory& memory, int count) {
  for (Mbarrier& barrier : mbarriers_.at(memory.name())) {
    if (barrier.ready) Fail("@", memory.name(), " is initialised twice");
    barrier.ready = true;
    barrier.init_epoch = order_[0].seen[0];
    barrier.count = barrier.pending = count;
  }
  ++order_[0].seen[0];
}

WarpBlock::Mbarrier& WarpBlock::Ready(const LaneMemory& memory, int64_t index, int lane) {
  Mbarrier& barrier = mbarriers_.at(memory.name())[index];
  if (!barrier.ready) Fail("@", memory.name(), "[", index, "] is used before its mbarrier_init");
  if (lane != 0 && order_[lane].seen[0] < barrier.init_epoch) {
    Fail("@", memory.name(), "[", index, "] is used by thread ", lane,
         " with no barrier after its mbarrier_init");
  }
  return barrier;
}

void WarpBlock::Advance(Mbarrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  barrier.done.Join(barrier.arrived);
  barrier.pending = barrier.count;
  ++barrier.phase;
  barrier.done.seen[barrier.unit] = barrier.phase;
}

void WarpBlock::Arrive(const LaneMemory& memory, int64_t index, int lane, int64_t bytes) {
  Mbarrier& barrier = Ready(memory, index, lane);
  if (barrier.pending == 0) {
    Fail("@", memory.name(), "[", index, "]: more than ", barrier.count, " arrivals in phase ",
         barrier.phase, ", which still lacks ", barrier.bytes, " bytes");
  }
  barrier.bytes += bytes;
  --barrier.pending;
  Publish(lane, barrier.arrived);
  Advance(barrier);
}

void WarpBlock::Wait(const LaneMemory& memory, const std::vector<int64_t>& index,
                     const std::vector<int64_t>& parity, const Active& active) {
  scheduler_->Yield();
  for (int lane : active) {
    Mbarrier* barrier = &Ready(memory, index[lane], lane);
    const int64_t want = parity[lane];
    if (want != 0 && want != 1)
      Fail("@", memory.name(), "[", index[lane], "]: parity ", want, " is neither 0 nor 1");
    if (barrier->phase % 2 == want) {
      scheduler_->WaitUntil([barrier, want] { return barrier->phase % 2 != want; },
                            [barrier, want, name = Cat("@", memory.name(), "[", index[lane], "]")] {
                              return Cat(name, " is in phase ", barrier->phase,
                                         ", a phase of parity ", want, " is waited for");
                            });
    }
    order_[lane].Join(barrier->done);
    barrier->waited = barrier->phase;
  }
}

void WarpBlock::Load(LaneMemory& target, std::vector<Element> elements, const LaneMemory& mbarriers,
                     int64_t index, int lane, int block) {
  Mbarrier* barrier = &Ready(mbarriers, index, lane);
  const Order& order = order_[lane];
  const Accessor by{barrier->unit, block, barrier->phase + 1, order.seen.data(),
                    order.fenced.data()};
  barrier->filled = by.epoch;
  for (const Element& element : elements) target.Launch(element.offset, by);
  scheduler_->Later([&target, elements = std::move(elements), barrier, block] {
    for (const Element& element : elements) {
      target.Land(element.offset, element.value, {barrier->unit, block, barrier->phase + 1});
    }
    barrier->bytes -= static_cast<int64_t>(elements.size()) * ir::SizeOf(target.dtype());
    Advance(*barrier);
  });
}

Accessor WarpBlock::StoreAccess(int lane, int block, bool write) const {
  const Order& order = order_[lane];
  return {store_unit(write), block, stores_, order.seen.data(), order.fenced.data()};
}

void WarpBlock::WaitForStores(int lane, int pending, bool read) {
  std::deque<int>& groups = store_groups_[lane];
  const int size = static_cast<int>(groups.size());
  if (size <= pending) return;
  const int epoch = groups[size - 1 - pending];
  for (bool write : {false, true}) {
    if (write && read) break;
    int& seen = order_[lane].seen[store_unit(write)];
    seen = std::max(seen, epoch);
  }
  groups.erase(groups.begin(), groups.end() - pending);
}

void WarpBlock::Together(int warp, const void* statement, std::vector<int64_t> words,
                         const std::function<void()>& act) {
  scheduler_->Yield();
  Collective& all = collectives_[warp / 4];
  if (all.arrived == 0) {
    all.statement = statement;
    all.words = std::move(words);
  } else if (all.statement != statement || all.words != words) {
    Fail("the warps of warpgroup ", warp / 4, " come to different wgmma or operands");
  }
  if (++all.arrived == 4) {
    all.arrived = 0;
    ++all.rounds;
    act();
    return;
  }
  scheduler_->WaitUntil([&all, round = all.rounds] { return all.rounds != round; },
                        [&all] { return Cat(all.arrived, " of the 4 warps of its warpgroup"); });
}

Order WarpBlock::SeenByAll(int group) const {
  Order order = order_[group * 128];
  for (int lane = group * 128 + 1; lane < group * 128 + 128; ++lane) order.Meet(order_[lane]);
  return order;
}

Accessor WarpBlock::NextWgmma(int group, int block, const Order& order) {
  const int epoch = ++wgmma_epochs_[group];
  for (int warp = 4 * group; warp < 4 * group + 4; ++warp) wgmma_[warp].open.epoch = epoch;
  return {wgmma_unit(group), block, epoch, order.seen.data(), order.fenced.data()};
}

void WarpBlock::CommitWgmma(int warp) {
  WgmmaQueue& queue = wgmma_[warp];
  queue.groups.push_back(std::move(queue.open));
  queue.open = {};
}

void WarpBlock::WaitForWgmma(int warp, int pending) {
  scheduler_->Yield();
  WgmmaQueue& queue = wgmma_[warp];
  while (static_cast<int>(queue.groups.size()) > pending) {
    const WgmmaGroup group = std::move(queue.groups.front());
    queue.groups.pop_front();
    for (const HeldRegisters& held : group.held) {
      const auto overlaps = [&](const HeldRegisters& other) {
        return other.memory == held.memory && other.offset < held.offset + held.count &&
               held.offset < other.offset + other.count;
      };
      const auto still_held = [&](const WgmmaGroup& later) {
        return std::any_of(later.held.begin(), later.held.end(), overlaps);
      };
      if (still_held(queue.open) ||
          std::any_of(queue.groups.begin(), queue.groups.end(), still_held)) {
        continue;
      }
      for (int lane = warp * 32; lane < warp * 32 + 32; ++lane) {
        for (int i = 0; i < held.count; ++i) held.memory->Settle(held.offset + i, {lane});
      }
    }
    for (int lane = warp * 32; lane < warp * 32 + 32; ++lane) {
      int& seen = order_[lane].seen[wgmma_unit(warp / 4)];
      seen = std::max(seen, group.epoch);
    }
  }
}

std::string WarpBlock::StateText() const {
  std::string text;
  for (const auto& [name, barriers] : mbarriers_) {
    for (size_t i = 0; i < barriers.size(); ++i) {
      const Mbarrier& barrier = barriers[i];
      AppendTo(text, Cat("; @", name, "[", i, "] in phase ", barrier.phase, ": ",
                         barrier.count - barrier.pending, " of ", barrier.count, " arrivals, ",
                         barrier.bytes, " bytes to come"));
    }
  }
  return text;
}

}  // namespace hackc::interp
