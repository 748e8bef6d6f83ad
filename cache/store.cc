// SPDX-License-Identifier: MIT
#include "cache/store.h"

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "compiler/support/text.h"

namespace hackc::cache {
namespace {

Key TimingKey(const Digest& code, std::string_view device) {
  return KeyBuilder("timing").Add("code", code.ToString()).Add("device", device).Build();
}

}  // namespace

absl::Status Store::PutTiming(const Digest& code, std::string_view device, std::string_view json) {
  NewAction timing{.key = TimingKey(code, device), .value = std::string(json), .replace = true};
  return PutAction(timing).status();
}

absl::StatusOr<std::string> Store::GetTiming(const Digest& code, std::string_view device) {
  HACKC_ASSIGN_OR_RETURN(Action action, GetAction("timing", TimingKey(code, device).digest()));
  return std::move(action.value);
}

void Store::Count(int64_t Stats::*counter, int64_t by) {
  std::lock_guard lock(counters_mutex_);
  counters_.*counter += by;
}

Stats Store::Counters() const {
  std::lock_guard lock(counters_mutex_);
  return counters_;
}

std::string ExplainMiss(Store& store, const Key& key, std::string_view name) {
  absl::StatusOr<Key> nearest = store.FindNearest(key, name);
  if (nearest.ok()) return ExplainDifference(key, *nearest);
  return absl::StrCat("wanted ", key.kind(), " ", key.digest().ToString(), "\nno stored ",
                      key.kind(), " has the name \"", View(name), "\"\n");
}

Action ToAction(const NewAction& made) {
  Action action{made.key.kind(), made.key.digest(), made.name, made.key.Explain(), made.value, {}};
  for (const NewBlob& blob : made.blobs) action.blobs.push_back({blob.role, Sha256(blob.bytes)});
  action.blobs.insert(action.blobs.end(), made.references.begin(), made.references.end());
  return action;
}

Digest Seal(const Action& action) {
  std::string text;
  const auto add = [&text](std::string_view part) {
    absl::StrAppend(&text, part.size(), ":", View(part));
  };
  add(action.kind);
  add(action.key.raw());
  add(action.name);
  add(action.key_text);
  add(action.value);
  for (const BlobRef& blob : action.blobs) {
    add(blob.role);
    add(blob.digest.raw());
  }
  return Sha256(text);
}

int64_t OwnBytes(const Action& action) {
  int64_t bytes =
      action.kind.size() + action.name.size() + action.key_text.size() + action.value.size();
  for (const BlobRef& blob : action.blobs) bytes += blob.role.size() + sizeof(Digest);
  return bytes;
}

}  // namespace hackc::cache
