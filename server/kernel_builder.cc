// SPDX-License-Identifier: MIT
#include "server/kernel_builder.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "server/milliseconds.h"

namespace hackc::server {

void KernelBuilder::Build(const cache::Key& key, const v1::worker::KernelSource& source,
                          Cancelled cancelled, Done done) {
  std::shared_ptr<Flight> flight;
  {
    std::lock_guard lock(mutex_);
    std::shared_ptr<Flight>& slot = flights_[key.digest()];
    if (slot) {
      slot->waiters.push_back({std::move(cancelled), std::move(done)});
      return;
    }
    slot = std::make_shared<Flight>();
    slot->key = key;
    slot->waiters.push_back({std::move(cancelled), std::move(done)});
    flight = slot;
  }
  // Looked up only once the flight is there, so that no build can end unseen in between.
  if (std::optional<StoredKernel> stored = artifacts_.FindKernel(key)) {
    Tell(*flight, BuiltKernel{.kernel = *std::move(stored), .hit = true});
    return;
  }
  *flight->request.mutable_kernel() = source;
  flight->request.mutable_kernel()->clear_ir();  // all that counts is in the CUDA text
  Start(flight);
}

void KernelBuilder::Start(const std::shared_ptr<Flight>& flight) {
  pool_.Submit(
      {.request = flight->request, .cancelled = [this, flight] { return AllCancelled(*flight); }},
      [this, flight](absl::StatusOr<v1::worker::Reply> reply) { Land(flight, std::move(reply)); });
}

bool KernelBuilder::AllCancelled(const Flight& flight) {
  std::lock_guard lock(mutex_);
  return std::all_of(flight.waiters.begin(), flight.waiters.end(),
                     [](const Waiter& waiter) { return waiter.cancelled(); });
}

void KernelBuilder::Land(const std::shared_ptr<Flight>& flight,
                         absl::StatusOr<v1::worker::Reply> reply) {
  if (absl::IsCancelled(reply.status()) && !AllCancelled(*flight)) {
    Start(flight);  // somebody joined after the pool had given it up
  } else if (!reply.ok()) {
    Tell(*flight, reply.status());
  } else if (!reply->has_kernel()) {
    Tell(*flight, absl::InternalError("the worker answered a kernel with something else"));
  } else {
    ++metrics_.kernels_compiled;
    BuiltKernel built{.nvrtc_ms = reply->kernel().nvrtc_ms()};
    const auto start = std::chrono::steady_clock::now();
    built.kernel = artifacts_.PutKernel(flight->key, flight->request.kernel().kernel().name(),
                                        std::move(*reply->mutable_kernel()));
    built.store_ms = MillisecondsSince(start);
    Tell(*flight, built);
  }
}

void KernelBuilder::Tell(Flight& flight, const absl::StatusOr<BuiltKernel>& built) {
  std::vector<Waiter> waiters;
  {
    std::lock_guard lock(mutex_);
    waiters.swap(flight.waiters);
    flights_.erase(flight.key.digest());
  }
  // Nothing of this object is touched after the last waiter is told.
  for (Waiter& waiter : waiters) waiter.done(built);
}

}  // namespace hackc::server
