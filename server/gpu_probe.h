// SPDX-License-Identifier: MIT
// What GPU N is, asked of the CUDA driver in a short-lived child, so that the server itself never
// holds a driver (tens of MB, and a process that crashes with it).
//
//   ASSIGN(GpuInfo gpu, ProbeGpu(0));   // {"NVIDIA H200", "sm_90a", "580.95.05"}
//
// To be called before any thread is started.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace hackc::server {

struct GpuInfo {
  std::string name;
  std::string arch;
  std::string driver;  // its version; that of its interface where the module does not tell
};

// FAILED_PRECONDITION without a driver that works, NOT_FOUND when there are fewer GPUs.
absl::StatusOr<GpuInfo> ProbeGpu(int index);

// The arch to compile for, with the suffix for what only that arch has: (9, 0) -> "sm_90a".
std::string ArchOfCapability(int major, int minor);

}  // namespace hackc::server
