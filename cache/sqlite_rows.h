// SPDX-License-Identifier: MIT
// The statements on the store's tables, one function each. They know rows, not files, limits or
// threads.
//
//   HACKC_ASSIGN_OR_RETURN(std::optional<ActionRow> row, FindAction(database, "kernel", key));
//   if (row && !row->IsSound()) HACKC_RETURN_IF_ERROR(DeleteAction(database, row->id));
//
// Each status is SQLite's own (see database.h). Thread safety is the database's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cache/database.h"
#include "cache/store.h"

namespace hackc::cache {

struct ActionRow {
  int64_t id = 0;
  bool pinned = false;
  Action action;
  std::string seal;
  std::vector<int64_t> blob_ids;  // 0 for a blob that is not there

  bool IsSound() const;
};

struct BlobRow {
  int64_t id = 0;
  std::string bytes;
};

absl::StatusOr<std::optional<ActionRow>> FindAction(Database& database, std::string_view kind,
                                                    const Digest& key);
absl::StatusOr<std::optional<BlobRow>> FindBlob(Database& database, const Digest& digest);
absl::StatusOr<int64_t> FindBlobId(Database& database, const Digest& digest);  // 0 if there is none

absl::Status InsertAction(Database& database, const Action& action, bool pinned, int64_t used);
// Without the bytes if they are there already.
absl::Status InsertBlob(Database& database, const Digest& digest, std::string_view bytes,
                        int64_t used);

absl::Status DeleteAction(Database& database, int64_t id);
// With the actions that refer to it; returns how many rows went.
absl::StatusOr<int64_t> DeleteBlob(Database& database, const Digest& digest);
// Deletes what was used longest ago and is not pinned; returns how many rows went, 0 if all is
// pinned.
absl::StatusOr<int64_t> DeleteOldest(Database& database);

// Of the last 64 used actions of the key's kind with this name, the nearest other key.
absl::StatusOr<std::optional<Key>> FindNearestKey(Database& database, const Key& key,
                                                  std::string_view name);

// Of what eviction looks at; 0 if there is nothing.
absl::StatusOr<int64_t> LatestUse(Database& database);

absl::Status CountRows(Database& database, Stats* stats);
absl::StatusOr<int64_t> UsedPages(Database& database);  // those that hold something

}  // namespace hackc::cache
