// SPDX-License-Identifier: MIT
#include "cache/sqlite_schema.h"

#include "absl/strings/str_cat.h"

namespace hackc::cache {
namespace {

constexpr int64_t kApplicationId = 0x6861636b;  // "hack", shown by file(1)

}  // namespace

// Partial index: eviction asks for the oldest action that is not pinned.
const std::vector<std::string>& SchemaSteps() {
  static const auto* steps = new std::vector<std::string>{R"sql(
CREATE TABLE blob(
  id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, used INTEGER NOT NULL, bytes BLOB NOT NULL);
CREATE INDEX blob_used ON blob(used);
CREATE TABLE action(
  id INTEGER PRIMARY KEY, kind TEXT NOT NULL, key BLOB NOT NULL, name TEXT NOT NULL,
  used INTEGER NOT NULL, pinned INTEGER NOT NULL, seal BLOB NOT NULL, key_text BLOB NOT NULL, value BLOB NOT NULL,
  UNIQUE(kind, key));
CREATE INDEX action_used ON action(used) WHERE pinned = 0;
CREATE INDEX action_name ON action(kind, name, used);
CREATE TABLE action_blob(
  action INTEGER NOT NULL REFERENCES action(id) ON DELETE CASCADE, position INTEGER NOT NULL,
  role TEXT NOT NULL, digest BLOB NOT NULL,
  PRIMARY KEY(action, position)) WITHOUT ROWID;
CREATE INDEX action_blob_digest ON action_blob(digest);
)sql"};
  return *steps;
}

absl::Status MigrateSchema(Database& database, const std::vector<std::string>& steps) {
  HACKC_ASSIGN_OR_RETURN(const int64_t version, database.Int("PRAGMA user_version"));
  HACKC_ASSIGN_OR_RETURN(const int64_t application, database.Int("PRAGMA application_id"));
  HACKC_ASSIGN_OR_RETURN(const int64_t tables, database.Int("SELECT count(*) FROM sqlite_master"));
  const int64_t newest = static_cast<int64_t>(steps.size());
  if (application != kApplicationId && (version != 0 || application != 0 || tables != 0)) {
    return absl::FailedPreconditionError(absl::StrCat(
        database.path(), ": is a database of another program; give another cache directory"));
  }
  if (version > newest) {
    return absl::FailedPreconditionError(absl::StrCat(
        database.path(), ": has schema version ", version, ", this program knows up to ", newest,
        "; use the newer program or another cache directory"));
  }
  if (version == newest) return absl::OkStatus();
  HACKC_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database));
  for (int64_t step = version; step < newest; ++step) {
    HACKC_RETURN_IF_ERROR(database.RunScript(steps[step]));
  }
  HACKC_RETURN_IF_ERROR(database.RunScript(absl::StrCat(
      "PRAGMA user_version = ", newest, "; PRAGMA application_id = ", kApplicationId)));
  return transaction.Commit();
}

}  // namespace hackc::cache
