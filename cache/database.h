// SPDX-License-Identifier: MIT
// SQLite's C interface as values that clean up after themselves and give absl::Status.
//
//   HACKC_ASSIGN_OR_RETURN(std::unique_ptr<Database> database, Database::Open(path));
//   HACKC_ASSIGN_OR_RETURN(Statement find,
//                          database->Prepare("SELECT id FROM blob WHERE digest = ?", Blob{raw}));
//   HACKC_ASSIGN_OR_RETURN(bool found, find.Step());
//
// Codes: DATA_LOSS for a file that is no sound database, RESOURCE_EXHAUSTED for full and failing
// disks, UNAVAILABLE for a lock that another process kept, PERMISSION_DENIED for what may not be
// written. Each text names the file. A Database and its statements belong to one thread at a time.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/support/status_macros.h"

namespace hackc::cache {

struct Blob {  // bound as a BLOB; other texts are bound as TEXT
  std::string_view bytes;
};

// One use of a prepared statement; given back to its database when it goes. Bound views must
// outlive it.
class Statement {
 public:
  Statement(sqlite3_stmt* statement, const std::string* path)
      : statement_(statement), path_(path) {}
  Statement(Statement&& other) noexcept
      : statement_(std::exchange(other.statement_, nullptr)), path_(other.path_) {}
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  absl::StatusOr<bool> Step();  // whether there is a row
  std::string_view Bytes(int column) const;
  int64_t Int(int column) const { return sqlite3_column_int64(statement_, column); }
  bool IsNull(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

 private:
  friend class Database;
  int BindOne(int index, std::string_view text);
  int BindOne(int index, Blob blob);
  int BindOne(int index, int64_t value) { return sqlite3_bind_int64(statement_, index, value); }

  sqlite3_stmt* statement_;
  const std::string* path_;
};

class Database {
 public:
  // Creates the file where there is none. Sets what no use of the store goes without (see the
  // source).
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& path);
  ~Database();

  // `sql` is compiled once for each text, and one use of it may be under way at a time.
  template <typename... Values>
  absl::StatusOr<Statement> Prepare(std::string_view sql, const Values&... values) {
    HACKC_ASSIGN_OR_RETURN(Statement statement, Find(sql));
    int index = 0, code = SQLITE_OK;
    ((code = code == SQLITE_OK ? statement.BindOne(++index, values) : code), ...);
    if (code != SQLITE_OK) return Error(code, sql);
    return statement;
  }

  // Steps to the end.
  template <typename... Values>
  absl::Status Run(std::string_view sql, const Values&... values) {
    HACKC_ASSIGN_OR_RETURN(Statement statement, Prepare(sql, values...));
    for (;;) {
      HACKC_ASSIGN_OR_RETURN(bool more, statement.Step());
      if (!more) return absl::OkStatus();
    }
  }

  // The first column of the first row, 0 without rows.
  template <typename... Values>
  absl::StatusOr<int64_t> Int(std::string_view sql, const Values&... values) {
    HACKC_ASSIGN_OR_RETURN(Statement statement, Prepare(sql, values...));
    HACKC_ASSIGN_OR_RETURN(bool found, statement.Step());
    return found ? statement.Int(0) : 0;
  }

  absl::Status RunScript(const std::string& sql);                 // several statements
  int64_t changes() const { return sqlite3_changes64(handle_); }  // rows of the last statement
  sqlite3* handle() const { return handle_; }
  const std::string& path() const { return path_; }

 private:
  Database(sqlite3* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  absl::StatusOr<Statement> Find(std::string_view sql);
  absl::Status Error(int code, std::string_view what) const;

  sqlite3* handle_;
  std::string path_;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
};

// BEGIN IMMEDIATE ... COMMIT; rolled back if it goes without Commit.
class Transaction {
 public:
  static absl::StatusOr<Transaction> Begin(Database& database);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  absl::Status Commit();

 private:
  explicit Transaction(Database* database) : database_(database) {}
  Database* database_;
};

}  // namespace hackc::cache
