// SPDX-License-Identifier: MIT
// The server's counters, in one place. All only grow; StatusResponse tells them.
// Thread safety: atomic, any thread counts and reads.
#pragma once

#include <atomic>
#include <cstdint>

namespace hackc::server {

struct Metrics {
  std::atomic<uint64_t> requests{0};
  std::atomic<uint64_t> program_hits{0};
  std::atomic<uint64_t> program_joins{0};  // requests that joined a running build
  std::atomic<uint64_t> kernel_hits{0};
  std::atomic<uint64_t> kernel_misses{0};
  std::atomic<uint64_t> kernels_compiled{0};
  std::atomic<uint64_t> jobs_cancelled{0};
  std::atomic<uint64_t> store_failures{0};
  std::atomic<uint64_t> refused_full{0};
  std::atomic<uint64_t> refused_kernels{0};  // at fault on the GPU
};

}  // namespace hackc::server
