// SPDX-License-Identifier: MIT
#include "cache/sqlite_store.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cache/pending_uses.h"
#include "cache/sqlite_file.h"
#include "cache/sqlite_rows.h"
#include "compiler/support/status_macros.h"
#include "compiler/support/text.h"

namespace hackc::cache {
namespace {

constexpr size_t kPendingUses = 256;  // then a read writes them down
// Rows touched by one transaction of upkeep; keeps its pages few enough for the smallest log.
constexpr int kRowsPerTransaction = 16;
constexpr int64_t kCheckpointBytes = int64_t{4} << 20;
constexpr absl::Duration kNeededCheckpointTimeout = absl::Milliseconds(300);
constexpr int kBusyTimeoutMs = 5000;

// An upper bound on the pages that a write of so many bytes changes: overflow pages carry 4092
// bytes, and a row more than that has its own leaf and some pages of indices.
int64_t PagesFor(int64_t bytes, int64_t rows) { return bytes / 4000 + 8 * rows + 16; }

bool IsStoreFailure(const absl::Status& status) {
  return !status.ok() && !absl::IsNotFound(status) && !absl::IsFailedPrecondition(status);
}

class SqliteStore : public Store {
 public:
  explicit SqliteStore(const SqliteStoreOptions& options)
      : file_(options.directory, options.limit_bytes), warn_(options.warn) {}
  ~SqliteStore() override;

  absl::Status Start();

  absl::StatusOr<Digest> PutBlob(std::string_view bytes) override;
  absl::StatusOr<std::string> GetBlob(const Digest& digest) override;
  absl::StatusOr<Action> PutAction(const NewAction& made) override;
  absl::StatusOr<Action> GetAction(std::string_view kind, const Digest& key) override;
  absl::Status Touch(std::string_view kind, const Digest& key) override;
  absl::Status Pin(std::string_view kind, const Digest& key, bool pinned) override;
  absl::Status Delete(std::string_view kind, const Digest& key) override;
  absl::StatusOr<Key> FindNearest(const Key& key, std::string_view name) override;
  Stats GetStats() override;

 private:
  using Body = absl::FunctionRef<absl::Status(Database&)>;

  // Both may run `body` more than once. A damaged or replaced file is dealt with on the way.
  absl::Status Read(Body body);
  absl::Status Write(int64_t pages, Body body);
  // The sound row, or none: an unsound one is dropped and counted.
  std::optional<ActionRow> FindSoundAction(std::string_view kind, const Digest& key);
  void CountDamage(const std::string& what, int64_t times = 1);
  void RecordUse(const ActionRow& row);
  void WriteUsesIfMany();

  // These are called with writer_mutex_ held and reader_mutex_ free.
  absl::Status Reopen(bool damaged);
  absl::Status WriteOnce(int64_t pages, Body body);
  // Writes down pending uses, evicts until `pages` more fit, shrinks a file that is over the limit.
  absl::Status MakeRoom(int64_t pages);
  // A transaction that may change so many pages. Empties the log before it where that is large, or
  // where they would take it over its share of the limit.
  absl::StatusOr<Transaction> Begin(int64_t pages);
  absl::Status ShrinkFile();
  void Checkpoint(absl::Duration timeout);

  const StoreFile file_;
  const std::function<void(const std::string&)> warn_;

  // Taken in this order. A change of connections_ needs both mutexes, a use of one connection its
  // own.
  std::mutex writer_mutex_;
  std::mutex reader_mutex_;
  Connections connections_;
  int64_t generation_ = 0;  // counts openings; guarded like connections_

  PendingUses uses_;
};

SqliteStore::~SqliteStore() {
  std::lock_guard lock(writer_mutex_);
  if (file_.IsCurrent(connections_)) MakeRoom(0).IgnoreError();
}

absl::Status SqliteStore::Start() {
  std::lock_guard lock(writer_mutex_);
  HACKC_RETURN_IF_ERROR(Reopen(false));
  // Only a file over the limit has work here; if it cannot be done now, the next write tries again.
  MakeRoom(0).IgnoreError();
  return absl::OkStatus();
}

absl::StatusOr<Digest> SqliteStore::PutBlob(std::string_view bytes) {
  const Digest digest = Sha256(bytes);
  HACKC_RETURN_IF_ERROR(Write(PagesFor(bytes.size(), 1), [&](Database& database) {
    return InsertBlob(database, digest, bytes, uses_.Now());
  }));
  return digest;
}

absl::StatusOr<std::string> SqliteStore::GetBlob(const Digest& digest) {
  std::optional<BlobRow> row;
  const absl::Status status = Read([&](Database& database) -> absl::Status {
    HACKC_ASSIGN_OR_RETURN(row, FindBlob(database, digest));
    return absl::OkStatus();
  });
  if (status.ok() && row.has_value()) {
    if (Sha256(row->bytes) == digest) {
      Count(&Stats::blob_hits);
      uses_.Record(PendingUses::kBlob, row->id);
      WriteUsesIfMany();
      return std::move(row->bytes);
    }
    // Looked at again inside the transaction: it may have been rebuilt, or found by someone else.
    bool dropped = false;
    const absl::Status drop = Write(PagesFor(0, 1), [&](Database& database) -> absl::Status {
      HACKC_ASSIGN_OR_RETURN(std::optional<BlobRow> again, FindBlob(database, digest));
      dropped = again.has_value() && Sha256(again->bytes) != digest;
      return dropped ? DeleteBlob(database, digest).status() : absl::OkStatus();
    });
    if (dropped || !drop.ok()) CountDamage(absl::StrCat("blob ", digest.ToString()));
  }
  Count(&Stats::blob_misses);
  return absl::NotFoundError(
      absl::StrCat("blob ", digest.ToString(), status.ok() ? "" : ": ", status.message()));
}

absl::StatusOr<Action> SqliteStore::PutAction(const NewAction& made) {
  const Action action = ToAction(made);
  Action stored;
  std::vector<int64_t> used_blobs;
  const auto publish = [&](Database& database) -> absl::Status {
    HACKC_ASSIGN_OR_RETURN(std::optional<ActionRow> old,
                           FindAction(database, action.kind, action.key));
    if (old.has_value() && old->IsSound() && !made.replace) {
      RecordUse(*old);
      stored = std::move(old->action);
      return absl::OkStatus();
    }
    if (old.has_value()) HACKC_RETURN_IF_ERROR(DeleteAction(database, old->id));
    const int64_t used = uses_.Now();
    for (size_t i = 0; i < made.blobs.size(); ++i) {
      HACKC_RETURN_IF_ERROR(
          InsertBlob(database, action.blobs[i].digest, made.blobs[i].bytes, used));
    }
    used_blobs.clear();
    for (const BlobRef& reference : made.references) {
      HACKC_ASSIGN_OR_RETURN(const int64_t id, FindBlobId(database, reference.digest));
      if (id == 0) {
        return absl::FailedPreconditionError(
            absl::StrCat("action ", action.kind, " ", action.key.ToString(), ", ", reference.role,
                         ": blob ", reference.digest.ToString(), " is not stored"));
      }
      used_blobs.push_back(id);
    }
    stored = action;
    return InsertAction(database, action, old.has_value() && old->pinned, used);
  };
  int64_t bytes = OwnBytes(action);
  for (const NewBlob& blob : made.blobs) bytes += blob.bytes.size();
  HACKC_RETURN_IF_ERROR(Write(PagesFor(bytes, made.blobs.size() + 1), publish));
  for (const int64_t id : used_blobs) uses_.Record(PendingUses::kBlob, id);
  return stored;
}

absl::StatusOr<Action> SqliteStore::GetAction(std::string_view kind, const Digest& key) {
  std::optional<ActionRow> row = FindSoundAction(kind, key);
  Count(row.has_value() ? &Stats::hits : &Stats::misses);
  if (row.has_value()) return std::move(row->action);
  return absl::NotFoundError(absl::StrCat("action ", View(kind), " ", key.ToString()));
}

absl::Status SqliteStore::Touch(std::string_view kind, const Digest& key) {
  if (FindSoundAction(kind, key).has_value()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("action ", View(kind), " ", key.ToString()));
}

absl::Status SqliteStore::Pin(std::string_view kind, const Digest& key, bool pinned) {
  return Write(PagesFor(0, 1), [&](Database& database) -> absl::Status {
    HACKC_RETURN_IF_ERROR(database.Run("UPDATE action SET pinned = ? WHERE kind = ? AND key = ?",
                                       int64_t{pinned}, kind, Blob{key.raw()}));
    if (database.changes() > 0) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat("action ", View(kind), " ", key.ToString()));
  });
}

absl::Status SqliteStore::Delete(std::string_view kind, const Digest& key) {
  return Write(PagesFor(0, 1), [&](Database& database) -> absl::Status {
    HACKC_ASSIGN_OR_RETURN(const std::optional<ActionRow> row, FindAction(database, kind, key));
    if (row.has_value()) return DeleteAction(database, row->id);
    return absl::NotFoundError(absl::StrCat("action ", View(kind), " ", key.ToString()));
  });
}

absl::StatusOr<Key> SqliteStore::FindNearest(const Key& key, std::string_view name) {
  std::optional<Key> nearest;
  const absl::Status status = Read([&](Database& database) -> absl::Status {
    HACKC_ASSIGN_OR_RETURN(nearest, FindNearestKey(database, key, name));
    return absl::OkStatus();
  });
  if (status.ok() && nearest.has_value()) return *std::move(nearest);
  return absl::NotFoundError(absl::StrCat(key.kind(), " named \"", View(name), "\""));
}

Stats SqliteStore::GetStats() {
  Stats stats;
  Read([&](Database& database) -> absl::Status {
    stats = Stats();
    HACKC_ASSIGN_OR_RETURN(const int64_t pages, UsedPages(database));
    stats.live_bytes = pages * StoreFile::kPageBytes;
    return CountRows(database, &stats);
  }).IgnoreError();
  Stats counters = Counters();
  counters.actions = std::move(stats.actions);
  counters.blobs = stats.blobs;
  counters.live_bytes = stats.live_bytes;
  counters.total_bytes = file_.TotalBytes();
  counters.limit_bytes = file_.limit_bytes();
  return counters;
}

std::optional<ActionRow> SqliteStore::FindSoundAction(std::string_view kind, const Digest& key) {
  std::optional<ActionRow> row;
  const absl::Status status = Read([&](Database& database) -> absl::Status {
    HACKC_ASSIGN_OR_RETURN(row, FindAction(database, kind, key));
    return absl::OkStatus();
  });
  if (!status.ok() || !row.has_value()) return std::nullopt;
  if (row->IsSound()) {
    RecordUse(*row);
    WriteUsesIfMany();
    return row;
  }
  bool dropped = false;
  const absl::Status drop = Write(PagesFor(0, 1), [&](Database& database) -> absl::Status {
    HACKC_ASSIGN_OR_RETURN(std::optional<ActionRow> again, FindAction(database, kind, key));
    dropped = again.has_value() && !again->IsSound();
    return dropped ? DeleteAction(database, again->id) : absl::OkStatus();
  });
  if (dropped || !drop.ok()) {
    CountDamage(absl::StrCat("action ", View(kind), " ", key.ToString()));
  }
  return std::nullopt;
}

absl::Status SqliteStore::Read(Body body) {
  for (int attempt = 0;; ++attempt) {
    absl::Status status = absl::UnavailableError("closed");
    int64_t generation = 0;
    {
      std::lock_guard lock(reader_mutex_);
      generation = generation_;
      if (file_.IsCurrent(connections_)) {
        status = body(*connections_.reader);
        if (!absl::IsDataLoss(status)) return status;
      }
    }
    if (attempt == 1) return status;
    std::lock_guard lock(writer_mutex_);
    if (generation == generation_) HACKC_RETURN_IF_ERROR(Reopen(absl::IsDataLoss(status)));
  }
}

absl::Status SqliteStore::Write(int64_t pages, Body body) {
  const int64_t log_bytes = pages * StoreFile::kLogPageBytes;
  if (log_bytes > file_.max_log_bytes() / 2) {
    Count(&Stats::store_failures);
    return absl::ResourceExhaustedError(
        absl::StrCat(file_.path(), ": one write may have ", file_.max_log_bytes() / 2,
                     " bytes under the limit of ", file_.limit_bytes(), ", got about ", log_bytes));
  }
  std::lock_guard lock(writer_mutex_);
  absl::Status status;
  // Again after damage, with an empty log and with twice the room: the estimate may have been
  // short.
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (absl::IsDataLoss(status) || !file_.IsCurrent(connections_)) {
      status = Reopen(absl::IsDataLoss(status));
      if (!status.ok()) break;
    }
    status = MakeRoom(pages << attempt);
    if (status.ok()) status = WriteOnce(pages, body);
    if (absl::IsResourceExhausted(status)) {
      Checkpoint(kNeededCheckpointTimeout);
    } else if (!absl::IsDataLoss(status)) {
      break;
    }
  }
  if (IsStoreFailure(status)) Count(&Stats::store_failures);
  return status;
}

absl::Status SqliteStore::WriteOnce(int64_t pages, Body body) {
  HACKC_ASSIGN_OR_RETURN(Transaction transaction, Begin(pages));
  HACKC_RETURN_IF_ERROR(body(*connections_.writer));
  return transaction.Commit();
}

absl::StatusOr<Transaction> SqliteStore::Begin(int64_t pages) {
  const int64_t most = file_.max_log_bytes() - pages * StoreFile::kLogPageBytes;
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (file_.LogBytes() > most) {
      Checkpoint(kNeededCheckpointTimeout);
    } else if (file_.LogBytes() > std::min(kCheckpointBytes, file_.max_log_bytes() / 4)) {
      Checkpoint(absl::ZeroDuration());
    }
    HACKC_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*connections_.writer));
    // Measured while no one else can write.
    if (file_.LogBytes() <= most) return transaction;
  }
  return absl::UnavailableError(
      absl::StrCat(file_.path(), ": the log has ", file_.LogBytes(), " of ", file_.max_log_bytes(),
                   " bytes and another process keeps it from being emptied"));
}

absl::Status SqliteStore::Reopen(bool damaged) {
  std::lock_guard lock(reader_mutex_);
  ++generation_;
  uses_.Clear();  // row ids of the other file
  HACKC_ASSIGN_OR_RETURN(connections_, file_.Open(std::exchange(connections_, {}), damaged));
  if (connections_.moved_aside > 0) CountDamage("the database", connections_.moved_aside);
  // Damage that this finds is dealt with when a row is read.
  uses_.StartAfter(LatestUse(*connections_.writer).value_or(0));
  return absl::OkStatus();
}

absl::Status SqliteStore::MakeRoom(int64_t pages) {
  Database& database = *connections_.writer;
  for (;;) {
    HACKC_ASSIGN_OR_RETURN(int64_t used, UsedPages(database));
    if (used + pages <= connections_.max_pages && uses_.size() == 0) break;
    HACKC_ASSIGN_OR_RETURN(Transaction transaction, Begin(PagesFor(0, kRowsPerTransaction)));
    HACKC_RETURN_IF_ERROR(uses_.WriteSome(database, kRowsPerTransaction));
    // Eviction waits for the last uses, since they decide what is oldest.
    for (int i = 0;
         uses_.size() == 0 && used + pages > connections_.max_pages && i < kRowsPerTransaction;
         ++i) {
      HACKC_ASSIGN_OR_RETURN(const int64_t evicted, DeleteOldest(database));
      if (evicted == 0) {
        return absl::ResourceExhaustedError(absl::StrCat(
            file_.path(), ": no room for ", pages * StoreFile::kPageBytes, " bytes: the limit is ",
            file_.limit_bytes(), " and all that is left is pinned"));
      }
      Count(&Stats::evictions, evicted);
      HACKC_ASSIGN_OR_RETURN(used, UsedPages(database));
    }
    HACKC_RETURN_IF_ERROR(transaction.Commit());
  }
  return ShrinkFile();
}

// Free pages are used again, so a file within its limit is left alone: only one from before the
// limit was lowered shrinks, a checkpoint's worth at a time, since each page that moves goes
// through the log.
absl::Status SqliteStore::ShrinkFile() {
  Database& database = *connections_.writer;
  for (;;) {
    HACKC_ASSIGN_OR_RETURN(const int64_t pages, database.Int("PRAGMA page_count"));
    HACKC_ASSIGN_OR_RETURN(const int64_t free, database.Int("PRAGMA freelist_count"));
    if (pages <= connections_.max_pages || free == 0) return absl::OkStatus();
    HACKC_ASSIGN_OR_RETURN(Transaction transaction, Begin(PagesFor(0, kRowsPerTransaction)));
    HACKC_RETURN_IF_ERROR(database.Run("PRAGMA incremental_vacuum(64)"));
    HACKC_RETURN_IF_ERROR(transaction.Commit());
    Checkpoint(kNeededCheckpointTimeout);
    HACKC_RETURN_IF_ERROR(
        database.RunScript(absl::StrCat("PRAGMA max_page_count = ", connections_.max_pages)));
  }
}

// TRUNCATE, so that the bytes really go. It fails at once while another process does the same, and
// without a busy handler also while someone reads or writes, hence the loop.
void SqliteStore::Checkpoint(absl::Duration timeout) {
  sqlite3* handle = connections_.writer->handle();
  const absl::Time deadline = absl::Now() + timeout;
  sqlite3_busy_timeout(handle, 0);
  while (sqlite3_wal_checkpoint_v2(handle, nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr) ==
             SQLITE_BUSY &&
         absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  sqlite3_busy_timeout(handle, kBusyTimeoutMs);
}

void SqliteStore::CountDamage(const std::string& what, int64_t times) {
  Count(&Stats::corruptions, times);
  if (warn_) warn_(absl::StrCat(file_.path(), ": ", what, " was damaged and is built anew"));
}

void SqliteStore::RecordUse(const ActionRow& row) {
  uses_.Record(PendingUses::kAction, row.id);
  for (const int64_t id : row.blob_ids) uses_.Record(PendingUses::kBlob, id);
}

// A read never waits for a writer to write down uses.
void SqliteStore::WriteUsesIfMany() {
  if (uses_.size() < kPendingUses || !writer_mutex_.try_lock()) return;
  if (file_.IsCurrent(connections_)) {
    sqlite3_busy_timeout(connections_.writer->handle(), 0);
    MakeRoom(0).IgnoreError();
    sqlite3_busy_timeout(connections_.writer->handle(), kBusyTimeoutMs);
  }
  writer_mutex_.unlock();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const SqliteStoreOptions& options) {
  auto store = std::make_unique<SqliteStore>(options);
  HACKC_RETURN_IF_ERROR(store->Start());
  return store;
}

}  // namespace hackc::cache
