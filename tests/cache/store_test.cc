// SPDX-License-Identifier: MIT
// The contract of cache/store.h, on each store there is.
#include "cache/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "cache/memory_store.h"
#include "tests/cache/testing.h"

namespace hackc::cache {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kLimit = int64_t{4} << 20;

class StoreTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Store> Open() {
    if (GetParam() == "memory") return std::make_unique<MemoryStore>(kLimit);
    return OpenAt(directory_.path(), kLimit);
  }

  TempDirectory directory_;
  std::unique_ptr<Store> store_ = Open();
  std::mt19937 random_{11};
};

INSTANTIATE_TEST_SUITE_P(Stores, StoreTest, ::testing::Values("memory", "sqlite"),
                         [](const auto& info) { return info.param; });

TEST_P(StoreTest, BlobsComeBackByDigest) {
  for (const size_t size : {0, 1, 4095, 4096, 4097, 100000}) {
    const std::string bytes = RandomBytes(random_, size);
    const absl::StatusOr<Digest> digest = store_->PutBlob(bytes);
    ASSERT_TRUE(digest.ok()) << digest.status();
    EXPECT_EQ(*digest, Sha256(bytes));
    EXPECT_EQ(store_->GetBlob(*digest).value(), bytes);
    EXPECT_EQ(store_->PutBlob(bytes).value(), *digest);
  }
  EXPECT_EQ(store_->GetStats().blobs, 6);
  const absl::Status status = store_->GetBlob(Sha256("never stored")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->GetStats().blob_hits, 6);
  EXPECT_EQ(store_->GetStats().blob_misses, 1);
}

TEST_P(StoreTest, ADeletedActionIsAMiss) {
  const NewAction made = Kernel(1, "cubin"), other = Kernel(2, "cubin");
  ASSERT_TRUE(store_->PutAction(made).ok() && store_->PutAction(other).ok());
  ASSERT_TRUE(store_->Pin("kernel", made.key.digest(), true).ok());
  EXPECT_TRUE(store_->Delete("kernel", made.key.digest()).ok());
  EXPECT_TRUE(absl::IsNotFound(store_->GetAction("kernel", made.key.digest()).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->Delete("kernel", made.key.digest())));
  EXPECT_TRUE(store_->GetAction("kernel", other.key.digest()).ok());
  EXPECT_EQ(store_->GetBlob(Sha256("cubin")).value(), "cubin") << "the other's too";
  EXPECT_TRUE(store_->PutAction(made).ok());
  EXPECT_TRUE(store_->GetAction("kernel", made.key.digest()).ok());
}

TEST_P(StoreTest, ActionComesBackWhole) {
  const Digest shared = store_->PutBlob("shared").value();
  NewAction made = Kernel(1, "cubin bytes");
  made.value = std::string("\0binary\xff", 8);
  made.references = {{"prelude", shared}, {"again", shared}};
  const absl::StatusOr<Action> put = store_->PutAction(made);
  ASSERT_TRUE(put.ok()) << put.status();
  const absl::StatusOr<Action> got = store_->GetAction("kernel", made.key.digest());
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(*got, *put);
  EXPECT_EQ(got->kind, "kernel");
  EXPECT_EQ(got->name, "matmul");
  EXPECT_EQ(got->value, made.value);
  EXPECT_EQ(got->key_text, made.key.Explain());
  const std::vector<BlobRef> refs = {{"cubin", Sha256("cubin bytes")},
                                     {"cuda", Sha256("// source of 1")},
                                     {"prelude", shared},
                                     {"again", shared}};
  EXPECT_EQ(got->blobs, refs);
  EXPECT_EQ(store_->GetBlob(got->blobs[0].digest).value(), "cubin bytes");
  EXPECT_EQ(store_->GetAction("program", made.key.digest()).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->GetAction("kernel", KernelKey(2).digest()).status().code(),
            absl::StatusCode::kNotFound);
  const Stats stats = store_->GetStats();
  EXPECT_EQ(stats.hits, 1);
  EXPECT_EQ(stats.misses, 2);
  EXPECT_EQ(stats.actions.at("kernel"), 1);
  EXPECT_EQ(stats.blobs, 3);
}

TEST_P(StoreTest, FirstAnswerStaysUnlessReplaced) {
  ASSERT_TRUE(store_->PutAction(Kernel(1, "first")).ok());
  const absl::StatusOr<Action> second = store_->PutAction(Kernel(1, "second"));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->blobs[0].digest, Sha256("first"));
  EXPECT_EQ(store_->GetBlob(Sha256("second")).status().code(), absl::StatusCode::kNotFound);
  NewAction third = Kernel(1, "third");
  third.replace = true;
  EXPECT_EQ(store_->PutAction(third).value().blobs[0].digest, Sha256("third"));
  EXPECT_EQ(store_->GetAction("kernel", KernelKey(1).digest()).value().blobs[0].digest,
            Sha256("third"));
}

TEST_P(StoreTest, MissingReferencePublishesNothing) {
  NewAction made = Kernel(1, "cubin");
  made.references = {{"kernel.7", Sha256("nowhere")}};
  const absl::Status status = store_->PutAction(made).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("kernel.7: blob " + Sha256("nowhere").ToString() + " is not stored"));
  EXPECT_EQ(store_->GetAction("kernel", made.key.digest()).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->GetBlob(Sha256("cubin")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->GetStats().store_failures, 0);
}

TEST_P(StoreTest, TimingsOfDevicesAreApartAndTheLatestStays) {
  const Digest kernel = Sha256("cubin");
  EXPECT_EQ(store_->GetTiming(kernel, "H200").status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(store_->PutTiming(kernel, "H200", "{\"us\": 12}").ok());
  ASSERT_TRUE(store_->PutTiming(kernel, "L4", "{\"us\": 99}").ok());
  ASSERT_TRUE(store_->PutTiming(kernel, "H200", "{\"us\": 11}").ok());
  EXPECT_EQ(store_->GetTiming(kernel, "H200").value(), "{\"us\": 11}");
  EXPECT_EQ(store_->GetTiming(kernel, "L4").value(), "{\"us\": 99}");
  EXPECT_EQ(store_->GetTiming(Sha256("other"), "L4").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->GetStats().actions.at("timing"), 2);
}

TEST_P(StoreTest, NearestKeyExplainsAMiss) {
  const auto key = [](const std::string& arch, const std::string& ir, int version) {
    return KeyBuilder("kernel").Add("arch", arch).Add("ir", ir).Add("version", version).Build();
  };
  const auto put = [&](const Key& k, const std::string& name) {
    ASSERT_TRUE(store_->PutAction({.key = k, .name = name}).ok());
  };
  put(key("sm_80", "a", 1), "norm");
  put(key("sm_90a", "a", 1), "norm");
  put(key("sm_90a", "b", 2), "other name");
  const Key wanted = key("sm_90a", "b", 1);
  EXPECT_EQ(store_->FindNearest(wanted, "norm").value().digest(), key("sm_90a", "a", 1).digest());
  EXPECT_EQ(store_->FindNearest(wanted, "nothing").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(ExplainMiss(*store_, wanted, "norm"), HasSubstr("\nir: \"b\" (stored: \"a\")\n"));
  EXPECT_THAT(ExplainMiss(*store_, wanted, "nothing"),
              HasSubstr("no stored kernel has the name \"nothing\""));
  put(wanted, "norm");
  EXPECT_NE(store_->FindNearest(wanted, "norm").value().digest(), wanted.digest());
}

TEST_P(StoreTest, LeastRecentlyUsedGoesFirst) {
  const std::string bytes = RandomBytes(random_, 300000);
  const auto cubin = [&](int i) { return std::to_string(i) + bytes; };
  const auto is_there = [&](int i) { return store_->Touch("kernel", KernelKey(i).digest()).ok(); };
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(store_->PutAction(Kernel(i, cubin(i))).ok());
  ASSERT_TRUE(store_->GetAction("kernel", KernelKey(0).digest()).ok());
  ASSERT_TRUE(store_->Touch("kernel", KernelKey(1).digest()).ok());
  int number = 5;
  while (store_->GetStats().evictions == 0) {
    ASSERT_LT(number, 20);
    ASSERT_TRUE(store_->PutAction(Kernel(number, cubin(number))).ok());
    ++number;
  }
  EXPECT_TRUE(is_there(0));
  EXPECT_TRUE(is_there(1));
  EXPECT_FALSE(is_there(2));
  EXPECT_TRUE(is_there(number - 1));
  EXPECT_LE(store_->GetStats().total_bytes, kLimit);
}

TEST_P(StoreTest, PinnedActionKeepsItsBlobs) {
  std::string bytes = RandomBytes(random_, 200000);
  ASSERT_TRUE(store_->PutAction(Kernel(0, bytes)).ok());
  ASSERT_TRUE(store_->Pin("kernel", KernelKey(0).digest(), true).ok());
  EXPECT_EQ(store_->Pin("kernel", KernelKey(99).digest(), true).code(),
            absl::StatusCode::kNotFound);
  for (int i = 1; i < 60; ++i) {
    ASSERT_TRUE(store_->PutAction(Kernel(i, RandomBytes(random_, 200000))).ok()) << i;
  }
  EXPECT_FALSE(store_->GetAction("kernel", KernelKey(1).digest()).ok());
  const absl::StatusOr<Action> pinned = store_->GetAction("kernel", KernelKey(0).digest());
  ASSERT_TRUE(pinned.ok()) << pinned.status();
  EXPECT_EQ(store_->GetBlob(pinned->blobs[0].digest).value(), bytes);

  ASSERT_TRUE(store_->Pin("kernel", KernelKey(0).digest(), false).ok());
  for (int i = 100; i < 160; ++i) {
    ASSERT_TRUE(store_->PutAction(Kernel(i, RandomBytes(random_, 200000))).ok()) << i;
  }
  EXPECT_FALSE(store_->GetAction("kernel", KernelKey(0).digest()).ok());
}

TEST_P(StoreTest, WhenAllIsPinnedItStopsStoringNotServing) {
  int stored = 0;
  absl::Status status;
  for (; stored < 100; ++stored) {
    status = store_->PutAction(Kernel(stored, RandomBytes(random_, 200000))).status();
    if (!status.ok()) break;
    ASSERT_TRUE(store_->Pin("kernel", KernelKey(stored).digest(), true).ok());
  }
  ASSERT_GT(stored, 5);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("pinned"));
  EXPECT_EQ(store_->GetStats().store_failures, 1);
  for (int i = 0; i < stored; ++i) {
    const absl::StatusOr<Action> action = store_->GetAction("kernel", KernelKey(i).digest());
    ASSERT_TRUE(action.ok()) << i;
    EXPECT_TRUE(store_->GetBlob(action->blobs[0].digest).ok()) << i;
  }
  ASSERT_TRUE(store_->Pin("kernel", KernelKey(0).digest(), false).ok());
  EXPECT_TRUE(store_->PutAction(Kernel(1000, RandomBytes(random_, 150000))).ok());
}

TEST_P(StoreTest, WhatCanNeverFitDrivesNothingOut) {
  ASSERT_TRUE(store_->PutAction(Kernel(1, "small")).ok());
  const absl::Status status = store_->PutBlob(std::string(kLimit + 1, 'x')).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(store_->GetStats().evictions, 0);
  EXPECT_EQ(store_->GetStats().store_failures, 1);
  EXPECT_TRUE(store_->GetAction("kernel", KernelKey(1).digest()).ok());
}

TEST_P(StoreTest, UsedBlobOutlivesItsUnusedAction) {
  const std::string bytes = RandomBytes(random_, 50000);
  ASSERT_TRUE(store_->PutAction({.key = KernelKey(0), .blobs = {{"cubin", bytes}}}).ok());
  for (int i = 1; store_->GetStats().evictions < 3; ++i) {
    ASSERT_TRUE(store_->PutBlob(RandomBytes(random_, 50000)).ok());
    ASSERT_EQ(store_->GetBlob(Sha256(bytes)).value(), bytes) << i;
  }
  EXPECT_FALSE(store_->GetAction("kernel", KernelKey(0).digest()).ok());
}

TEST_P(StoreTest, EvictedBlobTakesItsActionsAlong) {
  const std::string bytes = RandomBytes(random_, 300000);
  ASSERT_TRUE(store_->PutAction(Kernel(0, bytes)).ok());
  for (int i = 1; i < 40; ++i) {
    ASSERT_TRUE(store_->PutBlob(RandomBytes(random_, 300000)).ok());
    const absl::StatusOr<Action> action = store_->GetAction("kernel", KernelKey(500).digest());
    EXPECT_FALSE(action.ok());
  }
  EXPECT_FALSE(store_->GetAction("kernel", KernelKey(0).digest()).ok());
  EXPECT_FALSE(store_->GetBlob(Sha256(bytes)).ok());
}

TEST_P(StoreTest, ManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 100; ++i) {
        const int number = random() % 30;
        const std::string cubin = std::to_string(number) + std::string(20000, 'c');
        if (random() % 3 == 0) {
          EXPECT_TRUE(store_->PutAction(Kernel(number, cubin)).ok());
        } else if (absl::StatusOr<Action> action =
                       store_->GetAction("kernel", KernelKey(number).digest());
                   action.ok()) {
          EXPECT_EQ(store_->GetBlob(action->blobs[0].digest).value(), cubin);
        }
        if (random() % 50 == 0) {
          EXPECT_EQ(store_->GetStats().corruptions, 0);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store_->GetStats().store_failures, 0);
}

// The two stores share no code: whatever both agree on over random calls is likely what the
// contract says.
TEST(StoresAgree, OnRandomCalls) {
  TempDirectory directory;
  std::unique_ptr<Store> disk = OpenAt(directory.path());
  MemoryStore memory;
  std::mt19937 random(5);
  const auto same = [](const auto& a, const auto& b) {
    return a.status().code() == b.status().code() && (!a.ok() || *a == *b);
  };
  for (int i = 0; i < 3000; ++i) {
    const int number = random() % 40;
    const Digest key = KernelKey(number).digest();
    const std::string bytes = "blob " + std::to_string(random() % 20);
    switch (random() % 7) {
      case 0: EXPECT_TRUE(same(disk->PutBlob(bytes), memory.PutBlob(bytes))); break;
      case 1: EXPECT_TRUE(same(disk->GetBlob(Sha256(bytes)), memory.GetBlob(Sha256(bytes)))); break;
      case 2: {
        NewAction made = Kernel(number, bytes);
        made.name = "name " + std::to_string(random() % 3);
        made.replace = random() % 2;
        if (random() % 2)
          made.references = {{"reference", Sha256("blob " + std::to_string(random() % 20))}};
        EXPECT_TRUE(same(disk->PutAction(made), memory.PutAction(made)));
        break;
      }
      case 3:
        EXPECT_TRUE(same(disk->GetAction("kernel", key), memory.GetAction("kernel", key)));
        break;
      case 4:
        EXPECT_EQ(disk->Touch("kernel", key).code(), memory.Touch("kernel", key).code());
        break;
      case 5:
        EXPECT_EQ(disk->Pin("kernel", key, number % 2).code(),
                  memory.Pin("kernel", key, number % 2).code());
        break;
      case 6:
        EXPECT_EQ(disk->FindNearest(KernelKey(99), "name 1").ok(),
                  memory.FindNearest(KernelKey(99), "name 1").ok());
        break;
    }
    ASSERT_FALSE(::testing::Test::HasFailure()) << "call " << i;
  }
  const Stats a = disk->GetStats(), b = memory.GetStats();
  EXPECT_EQ(a.actions, b.actions);
  EXPECT_EQ(a.blobs, b.blobs);
  EXPECT_EQ(a.hits, b.hits);
  EXPECT_EQ(a.misses, b.misses);
  EXPECT_EQ(a.blob_hits, b.blob_hits);
  EXPECT_EQ(a.blob_misses, b.blob_misses);
}

}  // namespace
}  // namespace hackc::cache
