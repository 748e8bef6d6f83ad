// SPDX-License-Identifier: MIT
#include "compiler/interp/warp_scheduler.h"

namespace hackc::interp {

WarpScheduler::WarpScheduler(int warps, uint32_t seed, WarpHooks hooks)
    : random_(seed), hooks_(std::move(hooks)), warps_(warps) {}

void WarpScheduler::Run(const std::function<void(int warp)>& body) {
  for (size_t i = 0; i < warps_.size(); ++i) {
    warps_[i] = std::make_unique<Warp>();
    Warp* warp = warps_[i].get();
    warp->thread = std::thread([this, warp, i, &body] {
      warp->go.acquire();
      try {
        if (!cancelled_) body(static_cast<int>(i));
      } catch (const Cancelled&) {
      } catch (...) {
        failure_ = std::current_exception();
      }
      warp->done = true;
      back_.release();
    });
  }
  try {
    while (Step()) {
    }
  } catch (...) {
    failure_ = std::current_exception();
  }
  cancelled_ = true;
  for (std::unique_ptr<Warp>& warp : warps_) {
    if (!warp->done) {
      warp->go.release();
      back_.acquire();
    }
    warp->thread.join();
  }
  if (failure_) std::rethrow_exception(failure_);
}

bool WarpScheduler::Step() {
  std::vector<int> choices;  // a warp, or -1 - a work
  bool all_done = true;
  for (size_t i = 0; i < warps_.size(); ++i) {
    if (warps_[i]->done) continue;
    all_done = false;
    if (!warps_[i]->ready || warps_[i]->ready()) choices.push_back(static_cast<int>(i));
  }
  for (size_t i = 0; i < works_.size(); ++i) choices.push_back(-1 - static_cast<int>(i));
  if (choices.empty()) {
    if (!all_done) Fail(Deadlock());
    return false;
  }
  const int choice = choices[random_() % choices.size()];
  if (choice >= 0) {
    Resume(choice);
  } else {
    const std::function<void()> work = std::move(works_[-1 - choice]);
    works_.erase(works_.begin() + (-1 - choice));
    work();
  }
  return !failure_;
}

void WarpScheduler::Resume(int warp) {
  current_ = warp;
  hooks_.swap(warp);
  warps_[warp]->go.release();
  back_.acquire();
  if (!failure_) hooks_.swap(warp);  // after a failure, what is current says where
}

void WarpScheduler::WaitUntil(std::function<bool()> ready, std::function<std::string()> what) {
  Warp& warp = *warps_[current_];
  warp.ready = std::move(ready);
  warp.what = std::move(what);
  back_.release();
  warp.go.acquire();
  if (cancelled_) throw Cancelled();
  warp.ready = nullptr;
}

std::string WarpScheduler::Deadlock() const {
  std::string text = "deadlock: no warp can go on";
  std::string last;
  int first = 0;
  const auto flush = [&](int end) {
    if (last.empty()) return;
    text += end - first == 1 ? Cat("; warp ", first) : Cat("; warps ", first, " to ", end - 1);
    text += last;
  };
  for (int i = 0; i <= static_cast<int>(warps_.size()); ++i) {
    std::string now;
    if (i < static_cast<int>(warps_.size()) && !warps_[i]->done)
      now = Cat(" at ", hooks_.path(i), ": ", warps_[i]->what());
    if (now == last) continue;
    flush(i);
    last = std::move(now);
    first = i;
  }
  return text + hooks_.state();
}

}  // namespace hackc::interp
