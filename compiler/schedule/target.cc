// SPDX-License-Identifier: MIT
#include "compiler/schedule/target.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/support/lookup.h"

namespace hackc::schedule {
namespace {

constexpr int64_t kKiB = 1024;

const std::vector<Target>& Table() {
  static const auto* table = new std::vector<Target>{
      {"sm_80", 108, 163 * kKiB, 164 * kKiB, 1024, 2048, 2.0e12, 19.5e12, 312e12},  // A100 SXM 80GB
      {"sm_86", 82, 99 * kKiB, 100 * kKiB, 1024, 1536, 0.94e12, 35.6e12, 71e12},    // RTX 3090
      {"sm_89", 128, 99 * kKiB, 100 * kKiB, 1024, 1536, 1.0e12, 82.6e12, 165e12},   // RTX 4090
      {"sm_90a", 132, 227 * kKiB, 228 * kKiB, 1024, 2048, 4.8e12, 67e12, 989e12},   // H200 SXM
      {"sm_100a", 148, 227 * kKiB, 228 * kKiB, 1024, 2048, 8.0e12, 80e12, 2250e12},  // B200
      {"sm_120a", 170, 99 * kKiB, 100 * kKiB, 1024, 1536, 1.79e12, 105e12, 209e12},  // RTX 5090
  };
  return *table;
}

}  // namespace

absl::StatusOr<Target> FindTarget(std::string_view arch) {
  if (const Target* target = FindBy(Table(), &Target::arch, arch)) return *target;
  return absl::InvalidArgumentError(absl::StrCat("target.arch: unknown arch \"", std::string(arch),
                                                 "\"; known are ",
                                                 absl::StrJoin(TargetArchs(), ", ")));
}

ir::KernelLimits LimitsOf(const Target& target) {
  return {.max_threads = target.max_threads_per_block,
          .threads_per_multiprocessor = target.max_threads_per_multiprocessor,
          .shared_bytes = target.shared_bytes_per_block};
}

std::vector<std::string> TargetArchs() {
  std::vector<std::string> archs;
  for (const Target& target : Table()) archs.push_back(target.arch);
  return archs;
}

}  // namespace hackc::schedule
