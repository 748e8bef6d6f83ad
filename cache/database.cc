// SPDX-License-Identifier: MIT
#include "cache/database.h"

#include "absl/strings/str_cat.h"
#include "compiler/support/text.h"

namespace hackc::cache {
namespace {

absl::StatusCode ToStatusCode(int code) {
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return absl::StatusCode::kDataLoss;
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG: return absl::StatusCode::kResourceExhausted;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL: return absl::StatusCode::kUnavailable;
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY: return absl::StatusCode::kPermissionDenied;
    case SQLITE_CANTOPEN: return absl::StatusCode::kFailedPrecondition;
    default: return absl::StatusCode::kInternal;
  }
}

absl::Status MakeError(int code, sqlite3* handle, std::string_view path, std::string_view what) {
  return absl::Status(ToStatusCode(code),
                      absl::StrCat(View(path), ": ", View(what), ": ",
                                   handle ? sqlite3_errmsg(handle) : sqlite3_errstr(code),
                                   " (SQLite code ", code, ")"));
}

// Checkpoints are the store's own, since it has to keep the log within its size limit. Without the
// foreign_keys pragma the schema's cascades do nothing.
constexpr char kSettings[] =
    "PRAGMA foreign_keys = ON;"
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = NORMAL;"
    "PRAGMA wal_autocheckpoint = 0;";
// Only while the file has no page: later they do nothing, but cost a write.
constexpr char kSettingsOfNewFile[] =
    "PRAGMA page_size = 4096;"
    "PRAGMA auto_vacuum = INCREMENTAL;";
constexpr int kBusyTimeoutMs = 5000;

}  // namespace

Statement::~Statement() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

absl::StatusOr<bool> Statement::Step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return MakeError(code, sqlite3_db_handle(statement_), *path_, sqlite3_sql(statement_));
}

std::string_view Statement::Bytes(int column) const {
  const void* bytes = sqlite3_column_blob(statement_, column);  // before the size: it may convert
  const int size = sqlite3_column_bytes(statement_, column);
  return bytes == nullptr ? std::string_view()
                          : std::string_view(static_cast<const char*>(bytes), size);
}

int Statement::BindOne(int index, std::string_view text) {
  return sqlite3_bind_text64(statement_, index, text.data() ? text.data() : "", text.size(),
                             SQLITE_STATIC, SQLITE_UTF8);
}

int Statement::BindOne(int index, Blob blob) {
  return sqlite3_bind_blob64(statement_, index, blob.bytes.data() ? blob.bytes.data() : "",
                             blob.bytes.size(), SQLITE_STATIC);
}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const std::string& path) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(
      path.c_str(), &handle,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
      nullptr);
  if (code != SQLITE_OK) {
    absl::Status error = MakeError(code, handle, path, "open");
    sqlite3_close_v2(handle);
    return error;
  }
  std::unique_ptr<Database> database(new Database(handle, path));
  if (sqlite3_db_readonly(handle, "main") == 1) {
    return absl::PermissionDeniedError(absl::StrCat(path, ": may not be written"));
  }
  sqlite3_busy_timeout(handle, kBusyTimeoutMs);
  HACKC_ASSIGN_OR_RETURN(const int64_t pages, database->Int("PRAGMA page_count"));
  if (pages == 0) HACKC_RETURN_IF_ERROR(database->RunScript(kSettingsOfNewFile));
  HACKC_RETURN_IF_ERROR(database->RunScript(kSettings));
  HACKC_ASSIGN_OR_RETURN(Statement mode, database->Prepare("PRAGMA journal_mode"));
  HACKC_RETURN_IF_ERROR(mode.Step().status());
  if (mode.Bytes(0) != "wal") {
    return absl::FailedPreconditionError(absl::StrCat(
        path,
        ": this file system cannot hold a write-ahead log; give a directory on a local disk"));
  }
  return database;
}

Database::~Database() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close_v2(handle_);
}

absl::StatusOr<Statement> Database::Find(std::string_view sql) {
  auto found = statements_.find(sql);
  if (found == statements_.end()) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(handle_, sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK) return Error(code, sql);
    found = statements_.emplace(sql, statement).first;
  }
  return Statement(found->second, &path_);
}

absl::Status Database::RunScript(const std::string& sql) {
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code, sql);
}

absl::Status Database::Error(int code, std::string_view what) const {
  return MakeError(code, handle_, path_, what);
}

absl::StatusOr<Transaction> Transaction::Begin(Database& database) {
  HACKC_RETURN_IF_ERROR(database.Run("BEGIN IMMEDIATE"));
  return Transaction(&database);
}

// SQLite has rolled back by itself after some errors; then this one fails, and that is all right.
Transaction::~Transaction() {
  if (database_ != nullptr) database_->Run("ROLLBACK").IgnoreError();
}

absl::Status Transaction::Commit() {
  HACKC_RETURN_IF_ERROR(database_->Run("COMMIT"));
  database_ = nullptr;
  return absl::OkStatus();
}

}  // namespace hackc::cache
