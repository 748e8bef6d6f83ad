// SPDX-License-Identifier: MIT
// Keys of actions: the SHA-256 of named fields, with nothing of the host, the time or the
// environment.
//
//   Key key = KeyBuilder("kernel").Add("arch", "sm_90a").Add("ir", canonical_text).Build();
//   key.digest()   the address of the action
//   key.Explain()  exactly the bytes that were hashed
//
// What is hashed is a text, so that it can be read, stored beside the action and parsed again:
//
//   key    = "hackc-key 1 " kind "\n" { field }      fields in ascending order of their names
//   field  = name "[" length of value in bytes "]=" value "\n"
//   kind   = name = one or more of a-z 0-9 _ . -
//
// The length makes every field end where it says, whatever its value holds. The 1 is the format's
// version. Key is an immutable value, safe from any thread. KeyBuilder belongs to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cache/digest.h"

namespace hackc::cache {

class Key {
 public:
  // Accepts only what Explain() gives; anything else is INVALID_ARGUMENT with the offset.
  static absl::StatusOr<Key> Parse(std::string_view text);

  const std::string& kind() const { return kind_; }
  const std::map<std::string, std::string>& fields() const { return fields_; }
  const Digest& digest() const { return digest_; }
  const std::string& Explain() const { return text_; }

 private:
  friend class KeyBuilder;
  std::string kind_;
  std::map<std::string, std::string> fields_;
  std::string text_;
  Digest digest_;
};

class KeyBuilder {
 public:
  explicit KeyBuilder(std::string_view kind);
  // Names are the program's own: a malformed one, or one given twice, is an InternalError.
  KeyBuilder& Add(std::string_view name, std::string_view value);
  KeyBuilder& Add(std::string_view name, int64_t value);
  Key Build() const;

 private:
  std::string kind_;
  std::map<std::string, std::string> fields_;
};

// The number of fields that differ or exist on one side only; a different kind counts as one more.
int CountDifferences(const Key& a, const Key& b);

// What makes `wanted` another key than `stored`, for a person: one paragraph per differing field,
// long texts as the lines between their common beginning and end. Control bytes are escaped.
std::string ExplainDifference(const Key& wanted, const Key& stored);

}  // namespace hackc::cache
