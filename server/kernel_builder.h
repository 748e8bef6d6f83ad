// SPDX-License-Identifier: MIT
// One kernel: from the store, from a build of the same kernel that is running already (for whatever
// program), or from a worker.
//
//   builder.Build(key, source, cancelled, [](absl::StatusOr<BuiltKernel> kernel) { ... });
//
// `done` is called once, inside the call for a hit, else on a thread of the pool. `cancelled` is
// asked before a worker starts: a kernel is given up only when all who wait for it have cancelled.
// Thread safety: all functions may be called from any thread. Must outlive its calls.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "cache/key.h"
#include "hackc/v1/worker.pb.h"
#include "server/artifacts.h"
#include "server/metrics.h"
#include "server/worker_pool.h"

namespace hackc::server {

struct BuiltKernel {
  StoredKernel kernel;
  bool hit = false;
  double nvrtc_ms = 0;
  double store_ms = 0;
};

class KernelBuilder {
 public:
  using Cancelled = std::function<bool()>;
  using Done = std::function<void(absl::StatusOr<BuiltKernel>)>;

  KernelBuilder(Artifacts& artifacts, WorkerPool& pool, Metrics& metrics)
      : artifacts_(artifacts), pool_(pool), metrics_(metrics) {}

  void Build(const cache::Key& key, const v1::worker::KernelSource& source, Cancelled cancelled,
             Done done);

 private:
  struct Waiter {
    Cancelled cancelled;
    Done done;
  };
  struct Flight {
    cache::Key key;
    v1::worker::Request request;
    std::vector<Waiter> waiters;
  };
  void Start(const std::shared_ptr<Flight>& flight);
  void Land(const std::shared_ptr<Flight>& flight, absl::StatusOr<v1::worker::Reply> reply);
  void Tell(Flight& flight, const absl::StatusOr<BuiltKernel>& built);
  bool AllCancelled(const Flight& flight);

  Artifacts& artifacts_;
  WorkerPool& pool_;
  Metrics& metrics_;
  std::mutex mutex_;  // over flights_ and their waiters
  std::map<cache::Digest, std::shared_ptr<Flight>> flights_;
};

}  // namespace hackc::server
