// SPDX-License-Identifier: MIT
// What has been compiled, kept by content: blobs by digest, and actions that say which blobs a key
// gave.
//
//   NewAction made{.key = key, .name = "qkv_proj", .value = metadata};
//   made.blobs = {{"cubin", cubin}, {"cuda", source}};
//   store->PutAction(made);                                   // all or nothing
//   absl::StatusOr<Action> action = store->GetAction("kernel", key.digest());
//   absl::StatusOr<std::string> cubin = store->GetBlob(action->blobs[0].digest);
//
// A program, a report or a timing is an action too, of its own kind; a program names the kernels it
// needs in `references`. The first sound action of a key stays, so that a key has one answer for
// all who ask; only `replace` changes it.
//
// What callers rely on:
// - Reads give what was written, or NOT_FOUND: rows that fail their digest are dropped with the
//   actions that refer to them, counted, and reported as absent. Reads have no other error.
// - Rows go when space is needed, least recently used first, so even a blob whose action was just
//   read may be NOT_FOUND: then the action is a miss. Pinned actions and their blobs are never
//   evicted.
// - Writes fail with RESOURCE_EXHAUSTED (no room, disk full or failing), UNAVAILABLE (another
//   process kept the store or its log busy), FAILED_PRECONDITION (a reference that is not stored)
//   or INVALID_ARGUMENT. Nothing is then visible, the store keeps serving, and the next write tries
//   afresh.
// All stores are safe to use from any thread. std::mutex and not Abseil's: ThreadSanitizer cannot
// see into the locks of an Abseil that was built without it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache/digest.h"
#include "cache/key.h"

namespace hackc::cache {

struct NewBlob {
  std::string role;  // what the bytes are to the action: "cubin", "cuda", "ir.tile"
  std::string bytes;
};

struct BlobRef {
  std::string role;
  Digest digest;
  friend bool operator==(const BlobRef&, const BlobRef&) = default;
};

struct NewAction {
  Key key;
  std::string name;   // for people and FindNearest; not part of the key
  std::string value;  // small; larger things are blobs
  std::vector<NewBlob> blobs;
  std::vector<BlobRef> references;  // blobs that are stored already
  bool replace = false;
};

struct Action {
  std::string kind;
  Digest key;
  std::string name;
  std::string key_text;  // Key::Explain()
  std::string value;
  std::vector<BlobRef> blobs;  // NewAction's blobs, then its references

  friend bool operator==(const Action&, const Action&) = default;
};

struct Stats {
  // Now.
  std::map<std::string, int64_t> actions;  // rows of each kind
  int64_t blobs = 0;
  int64_t live_bytes = 0;   // rows and their indices
  int64_t total_bytes = 0;  // on disk: database, write-ahead log, its index
  int64_t limit_bytes = 0;
  // Since the store was opened, by this process.
  int64_t hits = 0, misses = 0;  // GetAction
  int64_t blob_hits = 0, blob_misses = 0;
  int64_t corruptions = 0;     // rows that failed their digest, files that are no database
  int64_t evictions = 0;       // rows
  int64_t store_failures = 0;  // writes that found no room or a failing disk
};

class Store {
 public:
  virtual ~Store() = default;

  virtual absl::StatusOr<Digest> PutBlob(std::string_view bytes) = 0;
  virtual absl::StatusOr<std::string> GetBlob(const Digest& digest) = 0;

  // Publishes the action and its blobs together. Returns what GetAction now gives.
  virtual absl::StatusOr<Action> PutAction(const NewAction& action) = 0;
  virtual absl::StatusOr<Action> GetAction(std::string_view kind, const Digest& key) = 0;

  // Counts as a use of the action and its blobs, without reading them as a hit or a miss.
  virtual absl::Status Touch(std::string_view kind, const Digest& key) = 0;
  virtual absl::Status Pin(std::string_view kind, const Digest& key, bool pinned) = 0;

  // The action is a miss from now on, pinned or not; its blobs stay until space is needed.
  // NOT_FOUND: there is none.
  virtual absl::Status Delete(std::string_view kind, const Digest& key) = 0;

  // Of the recently used actions with this kind and name, the key that differs from `key` in the
  // fewest fields, or NOT_FOUND. `key` itself does not count.
  virtual absl::StatusOr<Key> FindNearest(const Key& key, std::string_view name) = 0;

  virtual Stats GetStats() = 0;

  // Timings of one kernel or program on one device, as JSON; the latest stays. Actions of kind
  // "timing".
  absl::Status PutTiming(const Digest& code, std::string_view device, std::string_view json);
  absl::StatusOr<std::string> GetTiming(const Digest& code, std::string_view device);

 protected:
  void Count(int64_t Stats::*counter, int64_t by = 1);
  Stats Counters() const;

 private:
  mutable std::mutex counters_mutex_;
  Stats counters_;
};

// Why `key` is not in the store, against the nearest key that is: text for ExplainKey.
std::string ExplainMiss(Store& store, const Key& key, std::string_view name);

// For implementations: the action that `made` will be, with the digests of its blobs.
Action ToAction(const NewAction& made);
// Covers every part of an action, so that a row with any part changed or taken from another is
// found out.
Digest Seal(const Action& action);
// The bytes of an action that are neither blobs nor references.
int64_t OwnBytes(const Action& action);

}  // namespace hackc::cache
