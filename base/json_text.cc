// SPDX-License-Identifier: MIT
#include "base/json_text.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace hackc {
namespace {

using nlohmann::json;

constexpr size_t kMaxShown = 300;  // bytes of a path, or of what the library says

// Builds the document from the parser's events, and ends the parser by answering false.
class Builder : public nlohmann::json_sax<json> {
 public:
  Builder(const JsonLimits& limits, absl::string_view root) : limits_(limits), root_(root) {}

  bool null() override { return Put(nullptr); }
  bool boolean(bool value) override { return Put(value); }
  bool number_integer(int64_t value) override { return Put(value); }
  bool number_unsigned(uint64_t value) override { return Put(value); }
  bool number_float(double value, const std::string&) override { return Put(value); }
  bool string(std::string& value) override { return Put(std::move(value)); }
  bool binary(json::binary_t&) override { return Refuse("", "binary data"); }
  bool start_object(size_t) override { return Open(json::object()); }
  bool start_array(size_t) override { return Open(json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(std::string& value) override {
    Level& level = open_.back();
    level.key = std::move(value);
    return !level.value->contains(level.key) || Refuse(Path(), "given twice");
  }

  bool parse_error(size_t, const std::string&, const json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 3, column 7: ..."
    absl::string_view what = error.what();
    if (const size_t end = what.find("] "); end != what.npos) what.remove_prefix(end + 2);
    return Refuse(root_, absl::StrCat("not JSON: ", what.substr(0, kMaxShown)));
  }

  // Escapes: keys and what the library quotes are the text's own bytes.
  bool Refuse(absl::string_view path, absl::string_view what) {
    const bool cut = path.size() > kMaxShown;
    finding_ = absl::InvalidArgumentError(absl::CHexEscape(
        absl::StrCat(path.substr(0, kMaxShown), cut ? "..." : "", path.empty() ? "" : ": ", what)));
    return false;
  }

  const absl::Status& finding() const { return finding_; }
  json& document() { return document_; }

 private:
  struct Level {
    json* value;  // stays where it is: only the innermost container grows
    std::string key;
  };

  bool Put(json value) {
    if (open_.empty()) {
      document_ = std::move(value);
    } else if (json& around = *open_.back().value; around.is_object()) {
      around[open_.back().key] = std::move(value);
    } else if (around.size() < limits_.elements) {
      around.push_back(std::move(value));
    } else {
      return Refuse(Path(), absl::StrCat("more than ", limits_.elements, " elements"));
    }
    return true;
  }

  bool Open(json empty) {
    if (open_.size() == limits_.depth) {
      return Refuse(root_, absl::StrCat("nested deeper than ", limits_.depth, " levels"));
    }
    if (!Put(std::move(empty))) return false;
    json* made = &document_;
    if (!open_.empty()) {
      json& around = *open_.back().value;
      made = around.is_object() ? &around[open_.back().key] : &around.back();
    }
    open_.push_back({made, ""});
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  // Of the value that comes next: "a.b[3].c".
  std::string Path() const {
    std::string path(root_);
    for (const Level& level : open_) {
      if (level.value->is_object()) {
        absl::StrAppend(&path, path.empty() ? "" : ".", level.key);
      } else if (&level != &open_.back()) {
        absl::StrAppend(&path, "[", level.value->size() - 1, "]");
      }
    }
    return path;
  }

  const JsonLimits& limits_;
  const absl::string_view root_;
  json document_;
  std::vector<Level> open_;
  absl::Status finding_;
};

}  // namespace

absl::StatusOr<json> ParseJson(absl::string_view text, const JsonLimits& limits,
                               absl::string_view root) {
  Builder builder(limits, root);
  if (text.size() > limits.bytes) {
    builder.Refuse(
        root, absl::StrCat("expected at most ", limits.bytes, " bytes of JSON, got ", text.size()));
  } else if (json::sax_parse(text.begin(), text.end(), &builder)) {
    return std::move(builder.document());
  }
  return builder.finding();
}

}  // namespace hackc
