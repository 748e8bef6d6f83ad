// SPDX-License-Identifier: MIT
// What the warps of one running block share when each runs on its own (warp_scheduler.h): who has
// seen what, barriers, mbarriers, copies and matrix products in flight.
//
// Order is kept as vector clocks. Each thread and each unit counts its own epochs; `seen[j]` of a
// thread is the last epoch of j that happened before what the thread does now, `fenced[j]` the same
// behind a proxy fence. Arriving at a barrier publishes what a thread has seen and starts a new
// epoch of its own; a wait that ends joins what was published. Units: wgmma of each warpgroup (an
// epoch each), bulk stores (reads, then writes; an epoch each), bulk loads of each mbarrier (an
// epoch is a phase).
//
// Thread safety: that of WarpScheduler.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler/interp/lane_expr.h"
#include "compiler/interp/warp_scheduler.h"

namespace hackc::interp {

struct Order {
  std::vector<int> seen, fenced;
  void Join(const Order& other);
  void Meet(const Order& other);  // what both have seen
};

// Registers that a wgmma uses, of the lanes of one warp.
struct HeldRegisters {
  LaneMemory* memory;
  int64_t offset;
  int count;
};

class WarpBlock {
 public:
  WarpBlock(int lanes, uint32_t seed) : lanes_(lanes), seed_(seed) {}

  void AddMbarriers(const LaneMemory& memory) { mbarriers_[memory.name()].resize(memory.count()); }
  // Runs one block.
  void Run(WarpHooks hooks, const std::function<void(int warp)>& body);

  Accessor At(int lane, int block) const {
    const Order& order = order_[lane];
    return {lane, block, order.seen[lane], order.seen.data(), nullptr, false, fences_[lane / 32]};
  }

  // ---- barriers: id 0 is that of the block ----
  void Barrier(int id, int threads, const Active& active);
  void ProxyFence(const Active& active);

  // ---- mbarriers ----
  void Init(const LaneMemory& memory, int count);
  void Arrive(const LaneMemory& memory, int64_t index, int lane, int64_t bytes);
  void Wait(const LaneMemory& memory, const std::vector<int64_t>& index,
            const std::vector<int64_t>& parity, const Active& active);

  // ---- bulk copies ----
  struct Element {
    int64_t offset;
    Cell value;
  };
  // `elements` of `target` arrive later, and their bytes at the mbarrier.
  void Load(LaneMemory& target, std::vector<Element> elements, const LaneMemory& mbarriers,
            int64_t index, int lane, int block);
  // Reading (`write` false) and writing of one bulk store by `lane`, as its unit sees memory.
  Accessor StoreAccess(int lane, int block, bool write) const;
  void StartStore(int lane) {
    ++stores_;
    uncommitted_.insert(lane);
  }
  void CommitStores(int lane) {
    store_groups_[lane].push_back(stores_);
    uncommitted_.erase(lane);
  }
  void WaitForStores(int lane, int pending, bool read);

  // ---- wgmma ----
  // Whoever of the warpgroup's four warps comes last does `act`. All must come with the same
  // `words`.
  void Together(int warp, const void* statement, std::vector<int64_t> words,
                const std::function<void()>& act);
  // How the next wgmma of the warpgroup sees memory: what all its threads have seen.
  Order SeenByAll(int group) const;
  Accessor NextWgmma(int group, int block, const Order& order);
  void FenceWgmma(int warp) { ++fences_[warp]; }
  int fences(int warp) const { return fences_[warp]; }
  void Hold(int warp, HeldRegisters registers) { wgmma_[warp].open.held.push_back(registers); }
  void CommitWgmma(int warp);
  void WaitForWgmma(int warp, int pending);

 private:
  struct Mbarrier {
    bool ready = false;
    int init_epoch = 0;  // of thread 0
    int unit = 0;
    int count = 0, pending = 0;
    int64_t bytes = 0;  // expected and not yet there
    int phase = 0;
    int filled = 0, waited = 0;  // phases up to the last that bytes come in, that is waited for
    Order arrived, done;         // published in phases so far; in those that are over
  };
  struct Meeting {
    int threads = 0;
    Active arrived;
    Order published;
    int rounds = 0;
  };
  struct Collective {
    const void* statement = nullptr;
    std::vector<int64_t> words;
    int arrived = 0, rounds = 0;
  };
  struct WgmmaGroup {
    std::vector<HeldRegisters> held;
    int epoch = 0;
  };
  struct WgmmaQueue {
    WgmmaGroup open;
    std::deque<WgmmaGroup> groups;
  };

  int wgmma_unit(int group) const { return lanes_ + group; }
  int store_unit(bool write) const { return lanes_ + lanes_ / 128 + (write ? 1 : 0); }
  Order NewOrder() const { return {std::vector<int>(agents_), std::vector<int>(agents_)}; }
  void Publish(int lane, Order& into);
  Mbarrier& Ready(const LaneMemory& memory, int64_t index, int lane);
  static void Advance(Mbarrier& barrier);
  void CheckEnd() const;  // nothing is left that the block's memory must outlive
  std::string StateText() const;

  int lanes_;
  uint32_t seed_;
  int agents_ = 0;
  WarpScheduler* scheduler_ = nullptr;                      // of the block that runs
  std::vector<Order> order_;                                // by thread
  std::vector<int> fences_;                                 // by warp
  std::map<std::string, std::vector<Mbarrier>> mbarriers_;  // by name
  std::map<int, Meeting> meetings_;                         // by barrier id
  std::map<int, Collective> collectives_;                   // by warpgroup
  std::vector<int> wgmma_epochs_;                           // by warpgroup
  std::vector<WgmmaQueue> wgmma_;                           // by warp
  int stores_ = 0;
  std::set<int> uncommitted_;                    // threads with stores that no group holds
  std::map<int, std::deque<int>> store_groups_;  // by thread: epoch of the last store of each group
};

}  // namespace hackc::interp
