// SPDX-License-Identifier: MIT
#include "cache/sqlite_rows.h"

#include <algorithm>

namespace hackc::cache {

bool ActionRow::IsSound() const {
  return std::count(blob_ids.begin(), blob_ids.end(), 0) == 0 && Seal(action).raw() == seal;
}

// One statement, so that all of it is of one moment.
absl::StatusOr<std::optional<ActionRow>> FindAction(Database& database, std::string_view kind,
                                                    const Digest& key) {
  HACKC_ASSIGN_OR_RETURN(
      Statement find,
      database.Prepare("SELECT action.id, pinned, name, key_text, value, seal, role, "
                       "action_blob.digest, blob.id "
                       "FROM action LEFT JOIN action_blob ON action_blob.action = action.id "
                       "LEFT JOIN blob ON blob.digest = action_blob.digest "
                       "WHERE kind = ? AND key = ? ORDER BY position",
                       kind, Blob{key.raw()}));
  std::optional<ActionRow> row;
  for (;;) {
    HACKC_ASSIGN_OR_RETURN(const bool more, find.Step());
    if (!more) return row;
    if (!row.has_value()) {
      row.emplace();
      row->id = find.Int(0);
      row->pinned = find.Int(1) != 0;
      row->action = {std::string(kind),          key,
                     std::string(find.Bytes(2)), std::string(find.Bytes(3)),
                     std::string(find.Bytes(4)), {}};
      row->seal = find.Bytes(5);
    }
    if (find.IsNull(7)) continue;  // an action without blobs
    // A digest of another length fails the seal, like any other change.
    row->action.blobs.push_back(
        {std::string(find.Bytes(6)), Digest::FromRaw(find.Bytes(7)).value_or(Digest())});
    row->blob_ids.push_back(find.Int(8));
  }
}

absl::StatusOr<std::optional<BlobRow>> FindBlob(Database& database, const Digest& digest) {
  HACKC_ASSIGN_OR_RETURN(
      Statement find,
      database.Prepare("SELECT id, bytes FROM blob WHERE digest = ?", Blob{digest.raw()}));
  HACKC_ASSIGN_OR_RETURN(const bool found, find.Step());
  if (!found) return std::nullopt;
  return BlobRow{find.Int(0), std::string(find.Bytes(1))};
}

absl::Status InsertAction(Database& database, const Action& action, bool pinned, int64_t used) {
  const Digest seal = Seal(action);
  HACKC_RETURN_IF_ERROR(database.Run(
      "INSERT INTO action(kind, key, name, used, pinned, seal, key_text, value) VALUES(?, ?, ?, ?, "
      "?, ?, ?, ?)",
      std::string_view(action.kind), Blob{action.key.raw()}, std::string_view(action.name), used,
      int64_t{pinned}, Blob{seal.raw()}, Blob{action.key_text}, Blob{action.value}));
  const int64_t id = sqlite3_last_insert_rowid(database.handle());
  for (size_t i = 0; i < action.blobs.size(); ++i) {
    HACKC_RETURN_IF_ERROR(
        database.Run("INSERT INTO action_blob(action, position, role, digest) VALUES(?, ?, ?, ?)",
                     id, static_cast<int64_t>(i), std::string_view(action.blobs[i].role),
                     Blob{action.blobs[i].digest.raw()}));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> FindBlobId(Database& database, const Digest& digest) {
  return database.Int("SELECT id FROM blob WHERE digest = ?", Blob{digest.raw()});
}

absl::Status InsertBlob(Database& database, const Digest& digest, std::string_view bytes,
                        int64_t used) {
  HACKC_ASSIGN_OR_RETURN(const int64_t id, FindBlobId(database, digest));
  if (id != 0) {
    return database.Run("UPDATE blob SET used = max(used, ?) WHERE id = ?", used, id);
  }
  return database.Run("INSERT INTO blob(digest, used, bytes) VALUES(?, ?, ?)", Blob{digest.raw()},
                      used, Blob{bytes});
}

absl::Status DeleteAction(Database& database, int64_t id) {
  return database.Run("DELETE FROM action WHERE id = ?", id);
}

absl::StatusOr<int64_t> DeleteBlob(Database& database, const Digest& digest) {
  HACKC_RETURN_IF_ERROR(database.Run(
      "DELETE FROM action WHERE id IN (SELECT action FROM action_blob WHERE digest = ?)",
      Blob{digest.raw()}));
  const int64_t actions = database.changes();
  HACKC_RETURN_IF_ERROR(database.Run("DELETE FROM blob WHERE digest = ?", Blob{digest.raw()}));
  return actions + database.changes();
}

// A use of an action is a use of its blobs, so a blob is never older than its actions, and a blob
// that goes has lost them already. Of equal age, the action goes first.
absl::StatusOr<int64_t> DeleteOldest(Database& database) {
  HACKC_ASSIGN_OR_RETURN(
      Statement action,
      database.Prepare("SELECT id, used FROM action WHERE pinned = 0 ORDER BY used LIMIT 1"));
  HACKC_ASSIGN_OR_RETURN(
      Statement blob,
      database.Prepare("SELECT digest, used FROM blob WHERE NOT EXISTS (SELECT 1 FROM action_blob "
                       "JOIN action ON action.id = action_blob.action "
                       "WHERE action_blob.digest = blob.digest AND pinned) ORDER BY used LIMIT 1"));
  HACKC_ASSIGN_OR_RETURN(const bool has_action, action.Step());
  HACKC_ASSIGN_OR_RETURN(const bool has_blob, blob.Step());
  if (has_action && (!has_blob || action.Int(1) <= blob.Int(1))) {
    HACKC_RETURN_IF_ERROR(DeleteAction(database, action.Int(0)));
    return 1;
  }
  if (!has_blob) return 0;
  absl::StatusOr<Digest> digest = Digest::FromRaw(blob.Bytes(0));
  if (digest.ok()) return DeleteBlob(database, *digest);
  HACKC_RETURN_IF_ERROR(database.Run("DELETE FROM blob WHERE digest = ?", Blob{blob.Bytes(0)}));
  return 1;
}

absl::StatusOr<std::optional<Key>> FindNearestKey(Database& database, const Key& key,
                                                  std::string_view name) {
  HACKC_ASSIGN_OR_RETURN(
      Statement find,
      database.Prepare("SELECT key_text, key FROM action WHERE kind = ? AND name = ? AND key <> ? "
                       "ORDER BY used DESC LIMIT 64",
                       std::string_view(key.kind()), name, Blob{key.digest().raw()}));
  std::optional<Key> nearest;
  for (;;) {
    HACKC_ASSIGN_OR_RETURN(const bool more, find.Step());
    if (!more) return nearest;
    absl::StatusOr<Key> other = Key::Parse(find.Bytes(0));
    if (!other.ok() || other->digest().raw() != find.Bytes(1))
      continue;  // GetAction's to find and count
    if (!nearest || CountDifferences(key, *other) < CountDifferences(key, *nearest))
      nearest = *std::move(other);
  }
}

absl::StatusOr<int64_t> LatestUse(Database& database) {
  return database.Int(
      "SELECT max(ifnull((SELECT max(used) FROM blob), 0),"
      " ifnull((SELECT max(used) FROM action WHERE pinned = 0), 0))");
}

absl::Status CountRows(Database& database, Stats* stats) {
  HACKC_ASSIGN_OR_RETURN(Statement kinds,
                         database.Prepare("SELECT count(*), kind FROM action GROUP BY kind"));
  for (;;) {
    HACKC_ASSIGN_OR_RETURN(const bool more, kinds.Step());
    if (!more) break;
    stats->actions[std::string(kinds.Bytes(1))] = kinds.Int(0);
  }
  HACKC_ASSIGN_OR_RETURN(stats->blobs, database.Int("SELECT count(*) FROM blob"));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> UsedPages(Database& database) {
  HACKC_ASSIGN_OR_RETURN(const int64_t all, database.Int("PRAGMA page_count"));
  HACKC_ASSIGN_OR_RETURN(const int64_t free, database.Int("PRAGMA freelist_count"));
  return all - free;
}

}  // namespace hackc::cache
