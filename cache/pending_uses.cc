// SPDX-License-Identifier: MIT
#include "cache/pending_uses.h"

#include <algorithm>
#include <limits>

#include "absl/time/clock.h"

namespace hackc::cache {

int64_t PendingUses::Now() {
  std::lock_guard lock(mutex_);
  return NowLocked();
}

void PendingUses::StartAfter(int64_t used) {
  // A damaged row may say anything.
  constexpr int64_t kLatest = std::numeric_limits<int64_t>::max() / 2;
  std::lock_guard lock(mutex_);
  last_ = std::max(last_, std::min(used, kLatest));
}

void PendingUses::Record(Table table, int64_t id) {
  std::lock_guard lock(mutex_);
  uses_[{table, id}] = NowLocked();
}

absl::Status PendingUses::WriteSome(Database& database, size_t count) {
  decltype(uses_) batch;
  {
    std::lock_guard lock(mutex_);
    while (!uses_.empty() && batch.size() < count) batch.insert(uses_.extract(uses_.begin()));
  }
  for (const auto& [row, used] : batch) {
    HACKC_RETURN_IF_ERROR(database.Run(row.first == kBlob
                                           ? "UPDATE blob SET used = max(used, ?) WHERE id = ?"
                                           : "UPDATE action SET used = max(used, ?) WHERE id = ?",
                                       used, row.second));
  }
  return absl::OkStatus();
}

void PendingUses::Clear() {
  std::lock_guard lock(mutex_);
  uses_.clear();
}

size_t PendingUses::size() const {
  std::lock_guard lock(mutex_);
  return uses_.size();
}

int64_t PendingUses::NowLocked() {
  last_ = std::max(absl::GetCurrentTimeNanos() / 1000, last_ + 1);
  return last_;
}

}  // namespace hackc::cache
