// SPDX-License-Identifier: MIT
#include "cache/memory_store.h"

#include <algorithm>
#include <climits>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "compiler/support/text.h"

namespace hackc::cache {
namespace {

template <typename Rows, typename IsPinned>
typename Rows::iterator Oldest(Rows& rows, IsPinned is_pinned) {
  auto oldest = rows.end();
  for (auto row = rows.begin(); row != rows.end(); ++row) {
    if (is_pinned(row->second)) continue;
    if (oldest == rows.end() || row->second.used < oldest->second.used) oldest = row;
  }
  return oldest;
}

}  // namespace

absl::StatusOr<Digest> MemoryStore::PutBlob(std::string_view bytes) {
  const Digest digest = Sha256(bytes);
  std::lock_guard lock(mutex_);
  if (const auto row = blobs_.find(digest); row != blobs_.end()) {
    row->second.used = ++clock_;
    return digest;
  }
  HACKC_RETURN_IF_ERROR(MakeRoom(bytes.size()));
  blobs_[digest] = {std::string(bytes), ++clock_};
  live_bytes_ += bytes.size();
  return digest;
}

absl::StatusOr<std::string> MemoryStore::GetBlob(const Digest& digest) {
  std::lock_guard lock(mutex_);
  const auto row = blobs_.find(digest);
  Count(row == blobs_.end() ? &Stats::blob_misses : &Stats::blob_hits);
  if (row == blobs_.end()) return absl::NotFoundError(absl::StrCat("blob ", digest.ToString()));
  row->second.used = ++clock_;
  return row->second.bytes;
}

absl::StatusOr<Action> MemoryStore::PutAction(const NewAction& made) {
  const Action action = ToAction(made);
  std::lock_guard lock(mutex_);
  if (ActionRow* row = FindAndTouch(action.kind, action.key); row != nullptr && !made.replace) {
    return row->action;
  }
  // Touched first, so that making room takes others before them.
  for (const BlobRef& blob : action.blobs) {
    if (const auto row = blobs_.find(blob.digest); row != blobs_.end()) row->second.used = ++clock_;
  }
  int64_t bytes = OwnBytes(action);
  for (const NewBlob& blob : made.blobs) bytes += blob.bytes.size();
  HACKC_RETURN_IF_ERROR(MakeRoom(bytes));
  for (const BlobRef& reference : made.references) {
    if (blobs_.contains(reference.digest)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("action ", action.kind, " ", action.key.ToString(), ", ", reference.role,
                     ": blob ", reference.digest.ToString(), " is not stored"));
  }
  const ActionKey key(action.kind, action.key);
  const auto old = actions_.find(key);
  const bool pinned = old != actions_.end() && old->second.pinned;
  if (old != actions_.end()) EraseAction(old);
  for (size_t i = 0; i < made.blobs.size(); ++i) {
    const auto [row, is_new] = blobs_.try_emplace(action.blobs[i].digest);
    if (is_new) live_bytes_ += made.blobs[i].bytes.size();
    if (is_new) row->second.bytes = made.blobs[i].bytes;
  }
  ActionRow& row = actions_[key] = {action, ++clock_};
  for (const BlobRef& blob : action.blobs) blobs_[blob.digest].used = clock_;
  SetPinned(row, pinned);
  live_bytes_ += OwnBytes(action);
  return action;
}

absl::StatusOr<Action> MemoryStore::GetAction(std::string_view kind, const Digest& key) {
  std::lock_guard lock(mutex_);
  const ActionRow* row = FindAndTouch(kind, key);
  Count(row == nullptr ? &Stats::misses : &Stats::hits);
  if (row == nullptr)
    return absl::NotFoundError(absl::StrCat("action ", View(kind), " ", key.ToString()));
  return row->action;
}

absl::Status MemoryStore::Touch(std::string_view kind, const Digest& key) {
  std::lock_guard lock(mutex_);
  if (FindAndTouch(kind, key) != nullptr) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("action ", View(kind), " ", key.ToString()));
}

absl::Status MemoryStore::Pin(std::string_view kind, const Digest& key, bool pinned) {
  std::lock_guard lock(mutex_);
  ActionRow* row = FindAndTouch(kind, key);
  if (row == nullptr)
    return absl::NotFoundError(absl::StrCat("action ", View(kind), " ", key.ToString()));
  SetPinned(*row, pinned);
  return absl::OkStatus();
}

absl::Status MemoryStore::Delete(std::string_view kind, const Digest& key) {
  std::lock_guard lock(mutex_);
  const auto row = actions_.find({std::string(kind), key});
  if (row == actions_.end())
    return absl::NotFoundError(absl::StrCat("action ", View(kind), " ", key.ToString()));
  EraseAction(row);
  return absl::OkStatus();
}

absl::StatusOr<Key> MemoryStore::FindNearest(const Key& key, std::string_view name) {
  std::lock_guard lock(mutex_);
  int fewest = INT_MAX;
  int64_t last_used = 0;
  absl::StatusOr<Key> nearest =
      absl::NotFoundError(absl::StrCat(key.kind(), " named \"", View(name), "\""));
  for (const auto& [id, row] : actions_) {
    if (id.first != key.kind() || row.action.name != name || id.second == key.digest()) continue;
    HACKC_ASSIGN_OR_RETURN(Key other, Key::Parse(row.action.key_text));
    const int differences = CountDifferences(key, other);
    if (differences > fewest || (differences == fewest && row.used < last_used)) continue;
    fewest = differences;
    last_used = row.used;
    nearest = std::move(other);
  }
  return nearest;
}

Stats MemoryStore::GetStats() {
  Stats stats = Counters();
  std::lock_guard lock(mutex_);
  for (const auto& [id, row] : actions_) ++stats.actions[id.first];
  stats.blobs = blobs_.size();
  stats.live_bytes = stats.total_bytes = live_bytes_;
  stats.limit_bytes = limit_bytes_;
  return stats;
}

MemoryStore::ActionRow* MemoryStore::FindAndTouch(std::string_view kind, const Digest& key) {
  const auto row = actions_.find({std::string(kind), key});
  if (row == actions_.end()) return nullptr;
  row->second.used = ++clock_;
  for (const BlobRef& blob : row->second.action.blobs) blobs_.at(blob.digest).used = clock_;
  return &row->second;
}

void MemoryStore::SetPinned(ActionRow& row, bool pinned) {
  if (row.pinned == pinned) return;
  row.pinned = pinned;
  for (const BlobRef& blob : row.action.blobs) blobs_.at(blob.digest).pins += pinned ? 1 : -1;
}

void MemoryStore::EraseAction(Actions::iterator row) {
  SetPinned(row->second, false);
  live_bytes_ -= OwnBytes(row->second.action);
  actions_.erase(row);
}

void MemoryStore::EraseBlob(Blobs::iterator blob) {
  for (auto row = actions_.begin(); row != actions_.end();) {
    const auto& refs = row->second.action.blobs;
    const bool refers = std::any_of(refs.begin(), refs.end(),
                                    [&](const BlobRef& ref) { return ref.digest == blob->first; });
    if (refers) Count(&Stats::evictions);
    const auto next = std::next(row);
    if (refers) EraseAction(row);
    row = next;
  }
  live_bytes_ -= blob->second.bytes.size();
  blobs_.erase(blob);
}

absl::Status MemoryStore::MakeRoom(int64_t bytes) {
  while (live_bytes_ + bytes > limit_bytes_) {
    const auto action = Oldest(actions_, [](const ActionRow& row) { return row.pinned; });
    const auto blob = Oldest(blobs_, [](const BlobRow& row) { return row.pins > 0; });
    // What can never fit must not drive out what is there.
    if (bytes > limit_bytes_ || (action == actions_.end() && blob == blobs_.end())) {
      Count(&Stats::store_failures);
      return absl::ResourceExhaustedError(absl::StrCat("store in memory: ", bytes,
                                                       " bytes do not fit its limit of ",
                                                       limit_bytes_, " with what is pinned"));
    }
    Count(&Stats::evictions);
    // A use of an action is a use of its blobs, so a blob is never older than its actions.
    if (blob == blobs_.end() ||
        (action != actions_.end() && action->second.used <= blob->second.used)) {
      EraseAction(action);
    } else {
      EraseBlob(blob);
    }
  }
  return absl::OkStatus();
}

}  // namespace hackc::cache
