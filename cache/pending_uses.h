// SPDX-License-Identifier: MIT
// Which rows were used when, until a write comes along that can note it: each read would be a write
// otherwise. What a killed process forgets only makes eviction a little less exact.
//
//   uses.Record(PendingUses::kBlob, row.id);
//   ... HACKC_RETURN_IF_ERROR(uses.WriteSome(database, 16));   // in a transaction
//
// Safe from any thread; the database given to WriteSome is the caller's to guard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "cache/database.h"

namespace hackc::cache {

class PendingUses {
 public:
  enum Table { kAction, kBlob };

  // Microseconds since 1970, but never twice the same, so that the order of uses is known.
  int64_t Now();
  // Rows may have been used under a clock that was ahead of this one: what is new must not be
  // evicted before them.
  void StartAfter(int64_t used);
  void Record(Table table, int64_t id);
  // Writes at most `count` of them, which are forgotten even if that fails.
  absl::Status WriteSome(Database& database, size_t count);
  void Clear();
  size_t size() const;

 private:
  int64_t NowLocked();

  mutable std::mutex mutex_;
  int64_t last_ = 0;
  std::map<std::pair<Table, int64_t>, int64_t> uses_;
};

}  // namespace hackc::cache
