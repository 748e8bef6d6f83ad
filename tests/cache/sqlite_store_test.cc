// SPDX-License-Identifier: MIT
// What only a store on disk can meet: damaged rows and files, other versions, folders that cannot
// be used.
#include "cache/sqlite_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "cache/directory.h"
#include "cache/sqlite_schema.h"
#include "tests/cache/testing.h"

namespace hackc::cache {
namespace {

using ::testing::HasSubstr;

class SqliteStoreTest : public ::testing::Test {
 protected:
  std::string Cubin(int number) {
    return "cubin " + std::to_string(number) + std::string(9000, 'c');
  }

  void Fill(Store& store, int count) {
    for (int i = 0; i < count; ++i) {
      const absl::Status status = store.PutAction(Kernel(i, Cubin(i))).status();
      ASSERT_TRUE(status.ok()) << status;
    }
  }

  // Right answers or none; returns how many.
  int CountRight(Store& store, int count) {
    int right = 0;
    for (int i = 0; i < count; ++i) {
      const absl::StatusOr<Action> action = store.GetAction("kernel", KernelKey(i).digest());
      if (!action.ok()) {
        EXPECT_EQ(action.status().code(), absl::StatusCode::kNotFound) << action.status();
        continue;
      }
      EXPECT_EQ(action->value, "{\"block\": 128}");
      EXPECT_EQ(action->blobs[0].digest, Sha256(Cubin(i)));
      const absl::StatusOr<std::string> cubin = store.GetBlob(action->blobs[0].digest);
      if (cubin.ok()) {
        EXPECT_EQ(*cubin, Cubin(i));
      } else {
        EXPECT_EQ(cubin.status().code(), absl::StatusCode::kNotFound) << cubin.status();
      }
      right += cubin.ok();
    }
    return right;
  }

  TempDirectory directory_;
  const std::string database_ = directory_ / "store.db";
};

struct Damage {
  std::string name;
  std::string sql;  // %0 and %1: digests of the cubins of kernels 0 and 1, as SQL literals
  int wrong;        // kernels among 0..3 that this makes unusable
  int corruptions;  // rows found bad when all four are read

  friend std::ostream& operator<<(std::ostream& out, const Damage& damage) {
    return out << damage.sql;
  }
};

class RowDamageTest : public SqliteStoreTest, public ::testing::WithParamInterface<Damage> {};

// Part 3 of the bug kinds: truncate, zero, flip one byte, swap; for blobs, actions and what ties
// them.
INSTANTIATE_TEST_SUITE_P(
    Rows, RowDamageTest,
    ::testing::Values(
        Damage{"BlobTruncated", "UPDATE blob SET bytes = substr(bytes, 1, 704) WHERE digest = %0",
               1, 1},
        Damage{"BlobEmptied", "UPDATE blob SET bytes = x'' WHERE digest = %0", 1, 1},
        Damage{"BlobZeroed", "UPDATE blob SET bytes = zeroblob(length(bytes)) WHERE digest = %0", 1,
               1},
        Damage{"BlobExtended",
               "UPDATE blob SET bytes = CAST(bytes || x'00' AS BLOB) WHERE digest = %0", 1, 1},
        Damage{"BlobByteFlipped",
               "UPDATE blob SET bytes = CAST(substr(bytes, 1, 5000) || x'62' || substr(bytes, "
               "5002) AS BLOB) "
               "WHERE digest = %0",
               1, 1},
        Damage{"BlobsSwapped",
               "CREATE TEMP TABLE two AS SELECT digest, bytes FROM blob WHERE digest IN (%0, %1);"
               "UPDATE blob SET bytes = (SELECT bytes FROM two WHERE two.digest <> blob.digest) "
               "WHERE digest IN (%0, %1)",
               2, 2},
        Damage{"BlobRemoved", "DELETE FROM blob WHERE digest = %0", 1, 1},
        Damage{"BlobOfAnotherType", "UPDATE blob SET bytes = 7 WHERE digest = %0", 1, 1},
        Damage{"ValueTruncated", "UPDATE action SET value = substr(value, 1, 5) WHERE id = 1", 1,
               1},
        Damage{"ValueByteFlipped",
               "UPDATE action SET value = CAST(replace(value, '8', '9') AS BLOB) WHERE id = 1", 1,
               1},
        Damage{"KeyTextChanged", "UPDATE action SET key_text = x'00' WHERE id = 1", 1, 1},
        Damage{"NameChanged", "UPDATE action SET name = 'norm' WHERE id = 1", 1, 1},
        Damage{"SealZeroed", "UPDATE action SET seal = zeroblob(32) WHERE id = 1", 1, 1},
        Damage{"KeysSwapped",
               "CREATE TEMP TABLE two AS SELECT id, key FROM action WHERE id IN (1, 2);"
               "UPDATE action SET key = randomblob(32) WHERE id IN (1, 2);"
               "UPDATE action SET key = (SELECT key FROM two WHERE two.id <> action.id) WHERE id "
               "IN (1, 2)",
               2, 2},
        Damage{"ReferencesSwapped",
               "UPDATE action_blob SET action = -action WHERE action IN (1, 2);"
               "UPDATE action_blob SET action = 3 + action WHERE action IN (-1, -2)",
               2, 2},
        Damage{"ReferenceRemoved", "DELETE FROM action_blob WHERE action = 1 AND position = 1", 1,
               1},
        Damage{"ReferencesOutOfOrder",
               "UPDATE action_blob SET position = 9 WHERE action = 1 AND position = 0", 1, 1},
        Damage{"ReferenceDigestShort",
               "UPDATE action_blob SET digest = x'00' WHERE action = 1 AND position = 0", 1, 1}),
    [](const auto& info) { return info.param.name; });

TEST_P(RowDamageTest, IsAMissThenRebuilt) {
  std::unique_ptr<Store> store = OpenAt(directory_.path());
  Fill(*store, 4);
  ASSERT_EQ(CountRight(*store, 4), 4);
  std::string sql = GetParam().sql;
  for (int i = 0; i < 2; ++i) {
    const std::string literal = "x'" + Sha256(Cubin(i)).ToString().substr(7) + "'";
    for (size_t at; (at = sql.find("%" + std::to_string(i))) != sql.npos;)
      sql.replace(at, 2, literal);
  }
  ASSERT_GE(RawSql(database_, sql), 1) << sql;

  EXPECT_EQ(CountRight(*store, 4), 4 - GetParam().wrong);
  EXPECT_EQ(store->GetStats().corruptions, GetParam().corruptions);
  EXPECT_EQ(CountRight(*store, 4), 4 - GetParam().wrong);  // dropped: found only once
  EXPECT_EQ(store->GetStats().corruptions, GetParam().corruptions);
  EXPECT_EQ(store->GetStats().actions.at("kernel"), 4 - GetParam().wrong);
  Fill(*store, 4);
  EXPECT_EQ(CountRight(*store, 4), 4);
  EXPECT_EQ(store->GetStats().corruptions, GetParam().corruptions);
  EXPECT_EQ(store->GetStats().store_failures, 0);
}

// A put meets the bad row before any read does.
TEST_F(SqliteStoreTest, PutOverADamagedActionRebuildsIt) {
  std::unique_ptr<Store> store = OpenAt(directory_.path());
  Fill(*store, 1);
  RawSql(database_, "UPDATE action SET value = x'00'");
  EXPECT_EQ(store->PutAction(Kernel(0, Cubin(0))).value().value, "{\"block\": 128}");
  EXPECT_EQ(CountRight(*store, 1), 1);
}

TEST_F(SqliteStoreTest, SharedBlobTakesAllItsActionsAlong) {
  std::unique_ptr<Store> store = OpenAt(directory_.path());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(store->PutAction(Kernel(i, "one cubin")).ok());
  RawSql(database_, "UPDATE blob SET bytes = x'00' WHERE length(bytes) = 9");
  EXPECT_FALSE(store->GetBlob(Sha256("one cubin")).ok());
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(store->GetAction("kernel", KernelKey(i).digest()).ok());
  EXPECT_EQ(store->GetStats().corruptions, 1);
}

TEST_F(SqliteStoreTest, AllIsThereAfterReopening) {
  Fill(*OpenAt(directory_.path()), 20);
  std::unique_ptr<Store> store = OpenAt(directory_.path());
  EXPECT_EQ(CountRight(*store, 20), 20);
  EXPECT_EQ(store->GetStats().corruptions, 0);
}

TEST_F(SqliteStoreTest, PinsAndUsesSurviveReopening) {
  constexpr int64_t kLimit = int64_t{4} << 20;
  std::mt19937 random(3);
  {
    std::unique_ptr<Store> store = OpenAt(directory_.path(), kLimit);
    Fill(*store, 3);
    ASSERT_TRUE(store->Pin("kernel", KernelKey(0).digest(), true).ok());
    ASSERT_TRUE(store->Touch("kernel", KernelKey(1).digest()).ok());
  }
  std::unique_ptr<Store> store = OpenAt(directory_.path(), kLimit);
  while (store->GetStats().evictions == 0)
    ASSERT_TRUE(store->PutBlob(RandomBytes(random, 100000)).ok());
  EXPECT_FALSE(store->Touch("kernel", KernelKey(2).digest()).ok());
  while (store->GetStats().evictions < 50)
    ASSERT_TRUE(store->PutBlob(RandomBytes(random, 100000)).ok());
  EXPECT_TRUE(store->Touch("kernel", KernelKey(0).digest()).ok());
  EXPECT_FALSE(store->Touch("kernel", KernelKey(1).digest()).ok());
}

TEST_F(SqliteStoreTest, FileThatIsNoDatabaseIsMovedAside) {
  const std::string garbage(100000, '?');
  std::ofstream(database_) << garbage;
  std::unique_ptr<Store> store = OpenAt(directory_.path());
  EXPECT_EQ(store->GetStats().corruptions, 1);
  Fill(*store, 3);
  EXPECT_EQ(CountRight(*store, 3), 3);
  std::ifstream aside(database_ + ".corrupt");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(aside), {}), garbage);
  store = nullptr;
  store = OpenAt(directory_.path());
  EXPECT_EQ(CountRight(*store, 3), 3);
  EXPECT_EQ(store->GetStats().corruptions, 0);
}

TEST_F(SqliteStoreTest, LargeDamagedFileIsNotKept) {
  std::ofstream(database_) << std::string(3 << 20, '?');
  std::unique_ptr<Store> store = OpenAt(directory_.path(), int64_t{4} << 20);
  EXPECT_FALSE(std::filesystem::exists(database_ + ".corrupt"));
  EXPECT_LT(store->GetStats().total_bytes, int64_t{4} << 20);
}

TEST_F(SqliteStoreTest, EmptyAndTruncatedFiles) {
  std::ofstream(database_).close();
  { Fill(*OpenAt(directory_.path()), 10); }
  const auto size = std::filesystem::file_size(database_);
  for (const auto kept :
       {size / 2, uintmax_t{4096}, uintmax_t{1000}, uintmax_t{100}, uintmax_t{1}}) {
    std::filesystem::resize_file(database_, kept);
    std::filesystem::remove(database_ + "-wal");
    std::unique_ptr<Store> store = OpenAt(directory_.path());
    CountRight(*store, 10);
    Fill(*store, 10);
    EXPECT_EQ(CountRight(*store, 10), 10) << "kept " << kept;
  }
}

// Header and schema are sound, the tables' root pages are zero: opening succeeds, the first use
// meets it.
TEST_F(SqliteStoreTest, DamagedPagesAreMetWhileRunning) {
  for (const bool write_first : {false, true}) {
    { Fill(*OpenAt(directory_.path()), 10); }
    std::vector<int64_t> roots;
    {
      std::unique_ptr<Database> database = Database::Open(database_).value();
      Statement find =
          database->Prepare("SELECT rootpage FROM sqlite_master WHERE rootpage > 1").value();
      while (find.Step().value()) roots.push_back(find.Int(0));
    }
    ASSERT_EQ(roots.size(), 9u);  // three tables, six indices
    std::fstream file(database_, std::ios::in | std::ios::out | std::ios::binary);
    for (const int64_t root : roots) {
      file.seekp((root - 1) * 4096);
      file.write(std::string(4096, '\0').data(), 4096);
    }
    file.close();
    std::unique_ptr<Store> store = OpenAt(directory_.path());
    ASSERT_FALSE(std::filesystem::exists(database_ + ".corrupt"));
    if (!write_first) {
      EXPECT_EQ(CountRight(*store, 10), 0);
      EXPECT_TRUE(std::filesystem::exists(database_ + ".corrupt"));
    }
    Fill(*store, 10);
    EXPECT_EQ(store->GetStats().corruptions, 1);
    EXPECT_EQ(store->GetStats().store_failures, 0);
    EXPECT_TRUE(std::filesystem::exists(database_ + ".corrupt"));
    EXPECT_EQ(CountRight(*store, 10), 10);
    std::filesystem::remove(database_ + ".corrupt");
  }
}

// Whatever happens to the files while no one has them open: answers are right or absent, and a
// rebuild works.
TEST_F(SqliteStoreTest, RandomDamageOfTheFiles) {
  for (int round = 0; round < 60; ++round) {
    std::mt19937 random(round);
    { Fill(*OpenAt(directory_.path()), 12); }
    for (const std::string& path : {database_, database_ + "-wal"}) {
      const size_t size = std::filesystem::exists(path) ? std::filesystem::file_size(path) : 0;
      if (size == 0 || random() % 3 == 0) continue;
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      for (int hole = random() % 4; hole >= 0; --hole) {
        const std::string bytes = random() % 2 ? std::string(1 + random() % 5000, '\0')
                                               : RandomBytes(random, 1 + random() % 300);
        file.seekp(random() % size);
        file.write(bytes.data(), bytes.size());
      }
    }
    std::unique_ptr<Store> store = OpenAt(directory_.path());
    ASSERT_NE(store, nullptr) << "round " << round;
    CountRight(*store, 12);
    store->GetStats();
    for (int i = 0; i < 12; ++i) {
      // A file found bad half way is moved aside with what was put before.
      ASSERT_TRUE(store->PutAction(Kernel(i, Cubin(i))).ok()) << "round " << round;
    }
    CountRight(*store, 12);
    Fill(*store, 12);
    ASSERT_EQ(CountRight(*store, 12), 12) << "round " << round;
  }
}

TEST_F(SqliteStoreTest, FilesRemovedUnderARunningStore) {
  std::unique_ptr<Store> store = OpenAt(directory_.path());
  Fill(*store, 3);
  std::filesystem::remove_all(directory_.path());
  EXPECT_EQ(CountRight(*store, 3), 0);
  Fill(*store, 3);
  EXPECT_EQ(CountRight(*store, 3), 3);
  EXPECT_TRUE(std::filesystem::exists(database_));
}

// One process finds damage and moves the file aside; the other must not go on in the old one, nor
// remove the new one's log when it closes.
TEST_F(SqliteStoreTest, FileMovedAsideUnderARunningStore) {
  std::unique_ptr<Store> first = OpenAt(directory_.path()), second = OpenAt(directory_.path());
  Fill(*first, 3);
  ASSERT_EQ(CountRight(*second, 3), 3);
  RawSql(database_,
         "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'CREATE nonsense'");
  std::unique_ptr<Store> third = OpenAt(directory_.path());
  EXPECT_EQ(third->GetStats().corruptions, 1);
  Fill(*third, 5);
  EXPECT_EQ(CountRight(*first, 5), 5);
  first = nullptr;
  EXPECT_EQ(CountRight(*second, 5), 5);
  second = nullptr;
  EXPECT_EQ(CountRight(*third, 5), 5);
  third = nullptr;
  EXPECT_EQ(CountRight(*OpenAt(directory_.path()), 5), 5);
}

TEST_F(SqliteStoreTest, NewerSchemaIsRefusedAndKept) {
  { Fill(*OpenAt(directory_.path()), 2); }
  RawSql(database_, "PRAGMA user_version = 1000");
  const absl::Status status = OpenSqliteStore({directory_.path()}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            database_ +
                ": has schema version 1000, this program knows up to 1; use the newer "
                "program or another cache directory");
  RawSql(database_, "PRAGMA user_version = 1");
  EXPECT_EQ(CountRight(*OpenAt(directory_.path()), 2), 2);
}

TEST_F(SqliteStoreTest, AnotherProgramsDatabaseIsRefused) {
  RawSql(database_, "CREATE TABLE precious(x)");
  EXPECT_THAT(std::string(OpenSqliteStore({directory_.path()}).status().message()),
              HasSubstr("store.db: is a database of another program"));
  RawSql(database_, "INSERT INTO precious VALUES (1)");
}

TEST_F(SqliteStoreTest, OlderSchemaIsMigratedInOneStep) {
  const std::vector<std::string> old = {"CREATE TABLE t(a); INSERT INTO t VALUES (1)"};
  std::vector<std::string> now = old;
  now.push_back("ALTER TABLE t ADD COLUMN b");
  now.push_back("UPDATE t SET b = a + 1");
  std::unique_ptr<Database> database = Database::Open(database_).value();
  ASSERT_TRUE(MigrateSchema(*database, old).ok());
  ASSERT_TRUE(MigrateSchema(*database, now).ok());
  EXPECT_EQ(database->Int("SELECT b FROM t").value(), 2);
  EXPECT_EQ(database->Int("PRAGMA user_version").value(), 3);
  ASSERT_TRUE(MigrateSchema(*database, now).ok());
  // A step that fails leaves the version before.
  now.push_back("CREATE TABLE u(a)");
  now.push_back("no SQL");
  EXPECT_FALSE(MigrateSchema(*database, now).ok());
  EXPECT_EQ(database->Int("PRAGMA user_version").value(), 3);
  EXPECT_EQ(database->Int("SELECT count(*) FROM sqlite_master WHERE name = 'u'").value(), 0);
}

TEST_F(SqliteStoreTest, LimitTooSmallToWork) {
  const absl::Status status = OpenSqliteStore({directory_.path(), 1000}).status();
  EXPECT_EQ(status,
            absl::InvalidArgumentError("cache limit: expected at least 4194304 bytes, got 1000"));
}

TEST_F(SqliteStoreTest, FileInPlaceOfADirectory) {
  std::ofstream(directory_ / "file") << "x";
  for (const std::string& path : {directory_ / "file", directory_ / "file/below"}) {
    const absl::Status status = OpenSqliteStore({path}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("cache directory, " + path + ": "));
    EXPECT_THAT(std::string(status.message()), HasSubstr("Not a directory"));
  }
}

TEST_F(SqliteStoreTest, UnwritableDirectory) {
  const std::string path = directory_ / "closed";
  { Fill(*OpenAt(path), 1); }
  chmod(path.c_str(), 0555);
  chmod((path + "/store.db").c_str(), 0444);
  chmod((path + "/store.lock").c_str(), 0444);
  chmod(directory_.path().c_str(), 0555);
  const pid_t child = fork();
  if (child == 0) {  // root may write anywhere; user and group 65534 own nothing
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(2);
    const absl::Status closed = OpenSqliteStore({path}).status();
    const absl::Status missing = OpenSqliteStore({directory_ / "new/one"}).status();
    const bool right = closed.code() == absl::StatusCode::kPermissionDenied &&
                       closed.message().find(path) != absl::string_view::npos &&
                       missing.code() == absl::StatusCode::kPermissionDenied &&
                       missing.message().find(directory_ / "new/one") != absl::string_view::npos;
    if (!right) std::cerr << closed << "\n" << missing << std::endl;
    _exit(right ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  chmod(directory_.path().c_str(), 0755);
  chmod(path.c_str(), 0755);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Directory, NetworkFileSystemsAreRefusedByName) {
  const std::pair<uint64_t, std::string> networks[] = {{0x6969, "NFS"},
                                                       {0x517b, "SMB"},
                                                       {0xff534d42, "CIFS"},
                                                       {0xfe534d42, "SMB2"},
                                                       {0x0bd00bd0, "Lustre"}};
  for (const auto& [type, name] : networks) {
    const absl::Status status = CheckFileSystemType("/mnt/x", type);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(status.message(), "cache directory, /mnt/x: is on a network file system (" + name +
                                    "), where SQLite loses data; give a directory on a local disk");
  }
  for (const uint64_t local :
       {0xef53, 0x01021994, 0x58465342, 0x794c7630}) {  // ext4, tmpfs, xfs, overlay
    EXPECT_TRUE(CheckFileSystemType("/mnt/x", local).ok());
  }
}

TEST(Directory, LockIsExclusiveAndGoesWithItsHolder) {
  TempDirectory directory;
  absl::StatusOr<FileLock> lock = FileLock::Acquire(directory / "lock");
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(FileLock::Acquire(directory / "lock", absl::Milliseconds(20)).status().code(),
            absl::StatusCode::kUnavailable);
  { FileLock released = *std::move(lock); }
  EXPECT_TRUE(FileLock::Acquire(directory / "lock").ok());
}

}  // namespace
}  // namespace hackc::cache
