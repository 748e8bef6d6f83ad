// SPDX-License-Identifier: MIT
#include "compiler/frontend/config_reader.h"

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "compiler/support/cat.h"
#include "compiler/support/status_macros.h"

namespace hackc::frontend {
namespace {

std::string IntegerRange(int64_t min, int64_t max) {
  return Cat("expected an integer from ", min, " to ", max);
}

std::string NumberRange(double above, double max) {
  return Cat("expected a number above ", above, " and at most ", max);
}

}  // namespace

std::string ShortText(const nlohmann::json& value) {
  constexpr size_t kLength = 60;
  std::string text =
      value.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
  if (text.size() > kLength) text = text.substr(0, kLength - 3) + "...";
  return text;
}

const nlohmann::json* ConfigReader::Find(const std::string& key) {
  read_.insert(key);
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool ConfigReader::IsExplicitNull(const std::string& key) const {
  const auto found = object_.find(key);
  return found != object_.end() && found->is_null();
}

absl::StatusOr<std::optional<int64_t>> ConfigReader::Integer(const std::string& key, int64_t min,
                                                             int64_t max) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return std::optional<int64_t>();
  // Numbers above 2^63 are held unsigned: they exceed every maximum.
  const bool fits =
      value->is_number_integer() &&
      (!value->is_number_unsigned() || value->get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
  if (!fits || value->get<int64_t>() < min || value->get<int64_t>() > max) {
    return Error(key, IntegerRange(min, max), ", got ", ShortText(*value));
  }
  return std::optional<int64_t>(value->get<int64_t>());
}

absl::StatusOr<int64_t> ConfigReader::RequiredInteger(const std::string& key, int64_t min,
                                                      int64_t max) {
  HACKC_ASSIGN_OR_RETURN(const auto value, Integer(key, min, max));
  if (!value) return Error(key, "missing; ", IntegerRange(min, max));
  return *value;
}

absl::StatusOr<std::optional<double>> ConfigReader::Number(const std::string& key, double above,
                                                           double max) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return std::optional<double>();
  if (!value->is_number() || !(value->get<double>() > above) || !(value->get<double>() <= max)) {
    return Error(key, NumberRange(above, max), ", got ", ShortText(*value));
  }
  return std::optional<double>(value->get<double>());
}

absl::StatusOr<double> ConfigReader::RequiredNumber(const std::string& key, double above,
                                                    double max) {
  HACKC_ASSIGN_OR_RETURN(const auto value, Number(key, above, max));
  if (!value) return Error(key, "missing; ", NumberRange(above, max));
  return *value;
}

absl::StatusOr<bool> ConfigReader::Bool(const std::string& key, bool fallback) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) {
    return Error(key, "expected true or false, got ", ShortText(*value));
  }
  return value->get<bool>();
}

absl::StatusOr<std::optional<std::string>> ConfigReader::String(const std::string& key) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return std::optional<std::string>();
  if (!value->is_string()) {
    return Error(key, "expected a string, got ", ShortText(*value));
  }
  return std::optional<std::string>(value->get<std::string>());
}

std::string ConfigReader::Path(const std::string& key) const {
  const bool plain = key.size() <= 60 && absl::c_all_of(key, [](char c) {
                       return c == '_' || absl::ascii_isalnum(static_cast<unsigned char>(c));
                     });
  return plain && !key.empty() ? Cat(path_, ".", key) : Cat(path_, "[", ShortText(key), "]");
}

std::vector<std::string> ConfigReader::UnreadKeys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object_.items()) {
    if (!value.is_null() && !read_.contains(key)) keys.push_back(key);
  }
  return keys;
}

absl::StatusOr<std::optional<Spelling>> FindSpelling(const std::vector<Spelling>& spellings) {
  std::optional<Spelling> found;
  const nlohmann::json* value = nullptr;
  for (const Spelling& spelling : spellings) {
    if (spelling.reader == nullptr) continue;
    const nlohmann::json* other = spelling.reader->Find(spelling.key);
    if (other == nullptr) continue;
    if (value == nullptr) {
      found = spelling;
      value = other;
    } else if (*value != *other) {
      return spelling.reader->Error(spelling.key, ShortText(*other), " contradicts ",
                                    found->reader->Path(found->key), ": ", ShortText(*value),
                                    "; expected one of the two, or equal values");
    }
  }
  return found;
}

}  // namespace hackc::frontend
