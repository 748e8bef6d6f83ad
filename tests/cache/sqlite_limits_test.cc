// SPDX-License-Identifier: MIT
// Killed processes, several processes, full disks, and a size limit that holds at each moment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "tests/cache/testing.h"

namespace hackc::cache {
namespace {

std::string Cubin(int number) {
  std::mt19937 random(number);
  return RandomBytes(random, 1000 + random() % 60000);
}

// Whatever is visible is whole. Returns how many actions are.
int CheckAll(Store& store, int count) {
  int found = 0;
  for (int i = 0; i < count; ++i) {
    const absl::StatusOr<Action> action = store.GetAction("kernel", KernelKey(i).digest());
    if (!action.ok()) continue;
    ++found;
    for (const BlobRef& blob : action->blobs) EXPECT_TRUE(store.GetBlob(blob.digest).ok()) << i;
  }
  EXPECT_EQ(store.GetStats().corruptions, 0);
  return found;
}

// Runs `body` in a process of its own, which must end with 0 or be killed by the caller.
pid_t Fork(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  return child;
}

// Counts in memory that a child process shares, so that a test waits for what was done and not for
// a time in which a slow or busy machine may have done nothing.
class SharedCount {
 public:
  SharedCount()
      : count_(static_cast<std::atomic<int>*>(mmap(nullptr, sizeof(std::atomic<int>),
                                                   PROT_READ | PROT_WRITE,
                                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~SharedCount() { munmap(count_, sizeof(*count_)); }
  std::atomic<int>& operator*() { return *count_; }

 private:
  std::atomic<int>* count_;
};

// What a killed process was told is stored is stored; the rest is there whole or not at all.
// The clock was a year ahead when the cache was filled: what is stored now stays all the same.
TEST(SqliteLimits, RowsFromTheFutureAreEvictedInTheirTurn) {
  TempDirectory directory;
  constexpr int64_t kSmall = int64_t{4} << 20;
  std::mt19937 random(5);
  auto store = OpenAt(directory.path(), kSmall);
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(store->PutAction(Kernel(i, RandomBytes(random, 100'000))).ok());
  }
  ASSERT_GT(store->GetStats().evictions, 0) << "it is full";
  store = nullptr;
  for (const char* table : {"blob", "action"}) {
    ASSERT_GT(RawSql(directory / "store.db",
                     std::string("UPDATE ") + table + " SET used = used + 31536000000000"),
              0);
  }
  store = OpenAt(directory.path(), kSmall);
  for (int i = 100; i < 105; ++i) {
    ASSERT_TRUE(store->PutAction(Kernel(i, RandomBytes(random, 100'000))).ok());
  }
  for (int i = 100; i < 105; ++i) {
    EXPECT_TRUE(store->GetAction("kernel", KernelKey(i).digest()).ok()) << i;
  }
}

TEST(SqliteProcesses, KilledWhileWriting) {
  TempDirectory directory;
  std::mt19937 random(1);
  constexpr int kRounds = 15;
  constexpr int kMostPerRound = 64;  // all of them stay far below the store's limit
  int stored = 0;
  for (int round = 0; round < kRounds; ++round) {
    SharedCount written;
    const int first = round * kMostPerRound;
    const pid_t child = Fork([&] {
      std::unique_ptr<Store> store = OpenAt(directory.path());
      for (int i = 0; i < kMostPerRound; ++i) {
        if (store == nullptr || !store->PutAction(Kernel(first + i, Cubin(first + i))).ok()) {
          return false;
        }
        ++*written;
      }
      pause();
      return true;
    });
    // Round 0 kills a process that may still be making the file.
    const int enough = round == 0 ? 0 : random() % (kMostPerRound / 2);
    int status = 0;
    while (*written < enough) {
      ASSERT_EQ(waitpid(child, &status, WNOHANG), 0) << "the child ended by itself: " << status;
      usleep(50);
    }
    usleep(random() % 2000);
    ASSERT_EQ(kill(child, SIGKILL), 0);
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << status;
    stored += *written;
    std::unique_ptr<Store> store = OpenAt(directory.path());
    ASSERT_NE(store, nullptr);
    for (int i = first; i < first + *written; ++i) {
      EXPECT_TRUE(store->GetAction("kernel", KernelKey(i).digest()).ok()) << i;
    }
    const int found = CheckAll(*store, first + kMostPerRound);
    EXPECT_GE(found, stored);
    EXPECT_LE(found, stored + 1);  // the one that was stored and not yet counted
    stored = found;
    EXPECT_TRUE(store->PutBlob("still stores").ok());
  }
  EXPECT_GT(stored, kRounds);
}

TEST(SqliteProcesses, FourOnOneFile) {
  TempDirectory directory;
  constexpr int64_t kLimit = int64_t{8} << 20;  // so that they evict under each other
  std::vector<pid_t> children;
  for (int process = 0; process < 4; ++process) {
    children.push_back(Fork([&, process] {
      std::mt19937 random(process);
      absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore({directory.path(), kLimit});
      if (!store.ok()) std::cerr << store.status() << std::endl;
      if (!store.ok()) return false;
      for (int i = 0; i < 400; ++i) {
        const int number = random() % 300;
        const absl::StatusOr<Action> action =
            (*store)->GetAction("kernel", KernelKey(number).digest());
        if (action.ok()) {
          const absl::StatusOr<std::string> cubin = (*store)->GetBlob(action->blobs[0].digest);
          if (cubin.ok() && *cubin != Cubin(number)) return false;
        } else if (absl::Status put = (*store)->PutAction(Kernel(number, Cubin(number))).status();
                   !put.ok()) {
          std::cerr << put << std::endl;
          return false;
        }
      }
      const Stats stats = (*store)->GetStats();
      if (stats.total_bytes > kLimit) std::cerr << stats.total_bytes << " bytes" << std::endl;
      return stats.corruptions == 0 && stats.total_bytes <= kLimit;
    }));
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_GT(CheckAll(*OpenAt(directory.path(), kLimit), 300), 50);
}

int64_t BytesIn(const std::string& directory) {
  int64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::error_code gone;
    const auto size = std::filesystem::file_size(entry.path(), gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

TEST(SqliteLimit, HoldsAtEachMomentUnderRandomWrites) {
  for (const int64_t limit : {int64_t{4} << 20, int64_t{12} << 20}) {
    TempDirectory directory;
    std::unique_ptr<Store> store = OpenAt(directory.path(), limit);
    std::atomic<int64_t> most = 0;
    std::jthread watch([&](std::stop_token stop) {
      while (!stop.stop_requested()) {
        most = std::max<int64_t>(most, BytesIn(directory.path()));
        usleep(100);
      }
    });
    std::mt19937 random(2);
    int64_t written = 0;
    while (written < (int64_t{20} << 20)) {
      const int number = random() % 100000;
      const size_t size = random() % 10 == 0 ? random() % 300000 : random() % 3000;
      const absl::Status status =
          store->PutAction(Kernel(number, RandomBytes(random, size))).status();
      ASSERT_TRUE(status.ok()) << status;
      written += size;
      if (random() % 4 == 0)
        store->GetAction("kernel", KernelKey(random() % 100000).digest()).IgnoreError();
    }
    watch.request_stop();
    watch.join();
    most = std::max<int64_t>(most, BytesIn(directory.path()));
    EXPECT_LE(most, limit);
    EXPECT_GT(most, limit / 2);  // and the space is used
    const Stats stats = store->GetStats();
    EXPECT_EQ(stats.total_bytes, BytesIn(directory.path()));
    EXPECT_GT(stats.live_bytes, limit / 2);
    EXPECT_GT(stats.evictions, 100);
    EXPECT_EQ(stats.corruptions, 0);
    EXPECT_EQ(stats.store_failures, 0);
  }
}

TEST(SqliteLimit, LoweredLimitShrinksTheFile) {
  TempDirectory directory;
  std::mt19937 random(4);
  {
    std::unique_ptr<Store> store = OpenAt(directory.path(), int64_t{40} << 20);
    for (int i = 0; i < 500; ++i)
      ASSERT_TRUE(store->PutAction(Kernel(i, RandomBytes(random, 50000))).ok());
    ASSERT_GT(BytesIn(directory.path()), int64_t{20} << 20);
  }
  constexpr int64_t kLower = int64_t{8} << 20;
  std::unique_ptr<Store> store = OpenAt(directory.path(), kLower);
  EXPECT_LE(BytesIn(directory.path()), kLower);
  EXPECT_FALSE(store->GetAction("kernel", KernelKey(0).digest()).ok());
  EXPECT_TRUE(store->GetAction("kernel", KernelKey(499).digest()).ok());
  for (int i = 500; i < 700; ++i)
    ASSERT_TRUE(store->PutAction(Kernel(i, RandomBytes(random, 50000))).ok());
  EXPECT_LE(BytesIn(directory.path()), kLower);
  EXPECT_EQ(store->GetStats().corruptions, 0);
}

// A stopped reader keeps the log from being emptied: writes are then refused rather than the limit
// broken.
TEST(SqliteLimit, HoldsWhileAReaderKeepsTheLog) {
  TempDirectory directory;
  constexpr int64_t kLimit = int64_t{8} << 20;
  std::unique_ptr<Store> store = OpenAt(directory.path(), kLimit);
  ASSERT_TRUE(store->PutAction(Kernel(0, "first")).ok());
  sqlite3* reader = nullptr;
  ASSERT_EQ(sqlite3_open((directory / "store.db").c_str(), &reader), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM blob", nullptr, nullptr, nullptr),
            SQLITE_OK);
  std::mt19937 random(6);
  absl::Status status;
  for (int i = 1; i < 100 && status.ok(); ++i) {
    status = store->PutAction(Kernel(i, RandomBytes(random, 100000))).status();
    EXPECT_LE(BytesIn(directory.path()), kLimit);
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_TRUE(store->GetAction("kernel", KernelKey(0).digest()).ok());
  ASSERT_EQ(sqlite3_close(reader), SQLITE_OK);
  EXPECT_TRUE(store->PutAction(Kernel(100, RandomBytes(random, 100000))).ok());
}

// Fills a disk that `limit_disk` makes small, then gives the space back.
void FillDisk(const std::string& path, const std::function<void(bool)>& limit_disk) {
  std::unique_ptr<Store> store = OpenAt(path);
  ASSERT_NE(store, nullptr);
  ASSERT_TRUE(store->PutAction(Kernel(0, Cubin(0))).ok());
  limit_disk(true);
  absl::Status status;
  int stored = 1;
  for (; stored < 1000; ++stored) {
    status = store->PutAction(Kernel(stored, Cubin(stored))).status();
    if (!status.ok()) break;
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_GE(store->GetStats().store_failures, 1);
  EXPECT_EQ(store->GetAction("kernel", KernelKey(stored).digest()).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(store->GetBlob(Sha256(Cubin(stored))).status().code(), absl::StatusCode::kNotFound);
  for (int i = 0; i < stored; ++i) {  // serving goes on
    const absl::StatusOr<Action> action = store->GetAction("kernel", KernelKey(i).digest());
    ASSERT_TRUE(action.ok()) << i << " of " << stored;
    EXPECT_EQ(store->GetBlob(action->blobs[0].digest).value(), Cubin(i));
  }
  EXPECT_FALSE(
      store->PutAction(Kernel(2000, RandomBytes(*std::make_unique<std::mt19937>(9), 200000))).ok());
  limit_disk(false);
  for (int i = stored; i < stored + 5; ++i) {
    status = store->PutAction(Kernel(i, Cubin(i))).status();
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(CheckAll(*store, stored + 5), stored + 5);
  store = nullptr;
  EXPECT_EQ(CheckAll(*OpenAt(path), stored + 5), stored + 5);
}

TEST(SqliteFullDisk, WritesThatFailAndLaterDoNot) {
  TempDirectory directory;
  signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  FillDisk(directory.path(), [&](bool small) {
    const rlimit limit{small ? 700000 : before.rlim_cur, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  });
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_DFL);
}

TEST(SqliteFullDisk, SmallFileSystem) {
  TempDirectory directory;
  if (mount("tmpfs", directory.path().c_str(), "tmpfs", 0, "size=3m") != 0) {
    GTEST_SKIP() << "no small file system can be mounted here: " << strerror(errno);
  }
  FillDisk(directory.path(), [&](bool small) {
    if (small) return;
    ASSERT_EQ(mount("tmpfs", directory.path().c_str(), "tmpfs", MS_REMOUNT, "size=64m"), 0)
        << strerror(errno);
  });
  // Started on a disk that is full already: a clear answer, or a store that serves.
  std::FILE* filler = std::fopen((directory / "filler").c_str(), "w");
  while (std::fwrite(std::string(4096, 'f').data(), 1, 4096, filler) == 4096) {
  }
  std::fclose(filler);
  const absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore({directory.path()});
  if (store.ok()) {
    EXPECT_TRUE((*store)->GetAction("kernel", KernelKey(0).digest()).ok());
  } else {
    EXPECT_EQ(store.status().code(), absl::StatusCode::kResourceExhausted) << store.status();
  }
  const absl::Status fresh = OpenSqliteStore({directory / "fresh"}).status();
  EXPECT_EQ(fresh.code(), absl::StatusCode::kResourceExhausted) << fresh;
  umount2(directory.path().c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace hackc::cache
