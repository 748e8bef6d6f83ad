// SPDX-License-Identifier: MIT
// What several cache tests need: a folder that goes away, raw access to a store's database, short
// builders.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "cache/sqlite_store.h"
#include "cache/store.h"

namespace hackc::cache {

class TempDirectory {
 public:
  TempDirectory() {
    // In memory where it can be, for its speed: a killed process leaves the same there as on a
    // disk.
    const bool shared_memory = access("/dev/shm", W_OK) == 0;
    const std::string parent = shared_memory ? "/dev/shm" : std::filesystem::temp_directory_path();
    std::string path = parent + "/hackc_cache_XXXXXX";
    path_ = mkdtemp(path.data());
  }
  ~TempDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Runs `sql` on the file through a connection of its own; returns how many rows the last statement
// changed.
inline int RawSql(const std::string& path, const std::string& sql) {
  sqlite3* handle = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK)
      << sql << ": " << error;
  sqlite3_free(error);
  const int changes = sqlite3_changes(handle);
  EXPECT_EQ(sqlite3_close(handle), SQLITE_OK);
  return changes;
}

inline std::unique_ptr<Store> OpenAt(const std::string& directory,
                                     int64_t limit = int64_t{64} << 20) {
  absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore({directory, limit});
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

inline std::string RandomBytes(std::mt19937& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

inline Key KernelKey(int number) {
  return KeyBuilder("kernel").Add("arch", "sm_90a").Add("number", number).Build();
}

inline NewAction Kernel(int number, const std::string& cubin) {
  NewAction made{.key = KernelKey(number), .name = "matmul", .value = "{\"block\": 128}"};
  made.blobs = {{"cubin", cubin}, {"cuda", "// source of " + std::to_string(number)}};
  return made;
}

}  // namespace hackc::cache
