// SPDX-License-Identifier: MIT
// Typed access to one object of a config. It remembers which keys were asked for, so that whatever
// is left can be refused instead of ignored.
//
//   ConfigReader reader(config, "config");
//   HACKC_ASSIGN_OR_RETURN(int64_t hidden, reader.RequiredInteger("hidden_size", 1, 1 << 20));
//   for (const std::string& key : reader.UnreadKeys()) ...
//
// A key with the value null counts as absent, as transformers writes it. Thread safety: one reader,
// one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/support/cat.h"
#include "nlohmann/json.hpp"

namespace hackc::frontend {

// A value for an error message: compact JSON, at most 60 characters.
std::string ShortText(const nlohmann::json& value);

class ConfigReader {
 public:
  // `object` must outlive the reader.
  ConfigReader(const nlohmann::json& object, std::string path)
      : object_(object), path_(std::move(path)) {}

  // The value, or null when absent or JSON null.
  const nlohmann::json* Find(const std::string& key);
  bool IsExplicitNull(const std::string& key) const;

  absl::StatusOr<std::optional<int64_t>> Integer(const std::string& key, int64_t min, int64_t max);
  absl::StatusOr<int64_t> RequiredInteger(const std::string& key, int64_t min, int64_t max);
  // A finite number in (above, max].
  absl::StatusOr<std::optional<double>> Number(const std::string& key, double above, double max);
  absl::StatusOr<double> RequiredNumber(const std::string& key, double above, double max);
  absl::StatusOr<bool> Bool(const std::string& key, bool fallback);
  absl::StatusOr<std::optional<std::string>> String(const std::string& key);

  // "path.key"; a key that is no identifier, or a very long one, as path["short text"].
  std::string Path(const std::string& key) const;
  // INVALID_ARGUMENT "path.key: message".
  absl::Status Error(const std::string& key, const auto&... message) const {
    return absl::InvalidArgumentError(Cat(Path(key), ": ", message...));
  }

  // Keys with a value that nobody asked for, in alphabetical order.
  std::vector<std::string> UnreadKeys() const;

 private:
  const nlohmann::json& object_;
  std::string path_;
  std::set<std::string> read_;
};

// One setting that may be spelled in several places: its value from the first reader and key that
// has it. All spellings that are there must agree; the error names both.
struct Spelling {
  ConfigReader* reader;
  std::string key;
};
absl::StatusOr<std::optional<Spelling>> FindSpelling(const std::vector<Spelling>& spellings);

}  // namespace hackc::frontend
