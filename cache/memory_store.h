// SPDX-License-Identifier: MIT
// The store without a disk: for tests, and for serving where the cache directory cannot be used.
// Same contract as SqliteStore (tests run both side by side); the limit counts the bytes of rows.
//
//   std::unique_ptr<Store> store = std::make_unique<MemoryStore>(64 << 20);
//
// Safe from any thread; one mutex.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "cache/store.h"

namespace hackc::cache {

class MemoryStore : public Store {
 public:
  explicit MemoryStore(int64_t limit_bytes = int64_t{256} << 20) : limit_bytes_(limit_bytes) {}

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
  struct ActionRow {
    Action action;
    int64_t used = 0;
    bool pinned = false;
  };
  struct BlobRow {
    std::string bytes;
    int64_t used = 0;
    int pins = 0;  // pinned actions that refer to it
  };
  using ActionKey = std::pair<std::string, Digest>;
  using Actions = std::map<ActionKey, ActionRow>;
  using Blobs = std::map<Digest, BlobRow>;

  ActionRow* FindAndTouch(std::string_view kind, const Digest& key);
  void SetPinned(ActionRow& row, bool pinned);
  void EraseAction(Actions::iterator row);
  void EraseBlob(Blobs::iterator row);
  // Evicts until `bytes` more fit.
  absl::Status MakeRoom(int64_t bytes);

  const int64_t limit_bytes_;
  std::mutex mutex_;
  int64_t clock_ = 0;
  int64_t live_bytes_ = 0;
  Actions actions_;
  Blobs blobs_;
};

}  // namespace hackc::cache
