// SPDX-License-Identifier: MIT
// Facts of the hardware that schedules depend on, one row for each arch. No CUDA headers.
//
//   ASSIGN(Target target, FindTarget("sm_90a"));  // INVALID_ARGUMENT lists the known archs
//   target.shared_bytes_per_block == 232448
//
// Figures: NVIDIA's CUDA programming guide (limits per compute capability) and the data sheets of
// the part named beside each row. Rates are what schedules are ranked by, not promises.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/kernel_verify.h"

namespace hackc::schedule {

struct Target {
  std::string arch;  // with suffix
  int multiprocessors = 0;
  int64_t shared_bytes_per_block = 0;  // largest dynamic shared memory of one block
  int64_t shared_bytes_per_multiprocessor = 0;
  int max_threads_per_block = 1024;
  int max_threads_per_multiprocessor = 2048;
  double memory_bytes_per_second = 0;
  double fma_operations_per_second = 0;     // float32 outside the matrix units
  double matrix_operations_per_second = 0;  // dense bfloat16
};

absl::StatusOr<Target> FindTarget(std::string_view arch);
std::vector<std::string> TargetArchs();
ir::KernelLimits LimitsOf(const Target& target);

}  // namespace hackc::schedule
