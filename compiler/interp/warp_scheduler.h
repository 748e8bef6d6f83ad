// SPDX-License-Identifier: MIT
// Runs the warps of a block as programs of their own, one at a time, switching only where a warp
// waits or yields; which one goes next is drawn from a seed. Works of units beside the warps (bulk
// copies) are drawn like warps.
//
//   WarpScheduler scheduler(4, /*seed=*/1, hooks);
//   scheduler.Run([&](int warp) {
//     scheduler.WaitUntil([&] { return ready; }, [] { return "..."; });
//   });
//
// Fails with "deadlock" and what each warp waits for when none can go on. Thread safety: each warp
// has a thread of the process, but only one runs at any time; bodies need no locks.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "compiler/interp/lane_memory.h"

namespace hackc::interp {

struct WarpHooks {
  std::function<void(int warp)> swap;         // before a warp runs and after: its private state
  std::function<std::string(int warp)> path;  // where a warp that does not run stands
  std::function<std::string()> state;         // of all that warps may wait for
};

class WarpScheduler {
 public:
  WarpScheduler(int warps, uint32_t seed, WarpHooks hooks);

  void Run(const std::function<void(int warp)>& body);

  // For bodies. `what` says what is waited for.
  void WaitUntil(std::function<bool()> ready, std::function<std::string()> what);
  void Yield() { WaitUntil(nullptr, nullptr); }
  // A unit does `work` at some time from now on.
  void Later(std::function<void()> work) { works_.push_back(std::move(work)); }

 private:
  struct Warp {
    std::thread thread;
    std::binary_semaphore go{0};
    bool done = false;
    std::function<bool()> ready;  // absent: it can go on
    std::function<std::string()> what;
  };
  struct Cancelled {};

  void Resume(int warp);
  bool Step();  // false: nothing is left to do
  std::string Deadlock() const;

  std::mt19937 random_;
  WarpHooks hooks_;
  std::vector<std::unique_ptr<Warp>> warps_;
  std::vector<std::function<void()>> works_;
  std::binary_semaphore back_{0};
  int current_ = 0;
  bool cancelled_ = false;
  std::exception_ptr failure_;
};

}  // namespace hackc::interp
