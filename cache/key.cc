// SPDX-License-Identifier: MIT
#include "cache/key.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/support/internal_error.h"
#include "compiler/support/text.h"

namespace hackc::cache {
namespace {

constexpr std::string_view kHeader = "hackc-key 1 ";
constexpr size_t kShortValue =
    80;                           // longer values, and those of several lines, are shown as a diff
constexpr size_t kDiffLines = 8;  // of each side
constexpr size_t kLineWidth = 120;

bool IsName(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.-") == text.npos;
}

absl::Status Malformed(std::string_view text, std::string_view rest, std::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat("key text, byte ", text.size() - rest.size(),
                                                 ": expected ", View(expected), ", got \"",
                                                 absl::CHexEscape(View(rest.substr(0, 40))), "\""));
}

// At most kLineWidth bytes of `line`, starting a little before byte `focus`.
std::string Excerpt(absl::string_view line, size_t focus) {
  if (line.size() <= kLineWidth) return absl::Utf8SafeCHexEscape(line);
  const size_t begin = focus < kLineWidth / 2 ? 0 : focus - kLineWidth / 4;
  const absl::string_view part = line.substr(std::min(begin, line.size()), kLineWidth);
  return absl::StrCat(begin > 0 ? "..." : "", absl::Utf8SafeCHexEscape(part),
                      begin + part.size() < line.size() ? "..." : "");
}

template <typename Sequence>
size_t CommonPrefix(const Sequence& a, const Sequence& b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

void AppendLines(std::string* out, absl::string_view mark,
                 const std::vector<absl::string_view>& lines, size_t begin, size_t end,
                 const std::vector<absl::string_view>& other) {
  for (size_t i = begin; i < std::min(end, begin + kDiffLines); ++i) {
    const size_t focus = i < other.size() ? CommonPrefix(lines[i], other[i]) : 0;
    absl::StrAppend(out, "  ", mark, " ", Excerpt(lines[i], focus), "\n");
  }
  if (end > begin + kDiffLines) {
    absl::StrAppend(out, "  ", mark, " ... ", end - begin - kDiffLines, " more lines\n");
  }
}

// One hunk: the lines between the common beginning and the common end.
std::string DiffLines(const std::string& wanted_text, const std::string& stored_text) {
  const std::vector<absl::string_view> wanted = absl::StrSplit(wanted_text, '\n');
  const std::vector<absl::string_view> stored = absl::StrSplit(stored_text, '\n');
  const size_t begin = CommonPrefix(wanted, stored);
  size_t wanted_end = wanted.size(), stored_end = stored.size();
  while (wanted_end > begin && stored_end > begin &&
         wanted[wanted_end - 1] == stored[stored_end - 1]) {
    --wanted_end;
    --stored_end;
  }
  std::string out = absl::StrCat("from line ", begin + 1, " of ", wanted.size(), " (stored: of ",
                                 stored.size(), ")\n");
  AppendLines(&out, "-", stored, begin, stored_end, wanted);
  AppendLines(&out, "+", wanted, begin, wanted_end, stored);
  return out;
}

std::string ExplainField(const std::string* wanted, const std::string* stored) {
  const auto shown = [](const std::string& value) {
    return absl::StrCat("\"", Excerpt(value, 0), "\"");
  };
  if (stored == nullptr) return absl::StrCat(shown(*wanted), " (stored key has no such field)\n");
  if (wanted == nullptr) return absl::StrCat("no such field (stored: ", shown(*stored), ")\n");
  const auto is_short = [](const std::string& value) {
    return value.size() <= kShortValue && value.find('\n') == value.npos;
  };
  if (is_short(*wanted) && is_short(*stored)) {
    return absl::StrCat(shown(*wanted), " (stored: ", shown(*stored), ")\n");
  }
  return DiffLines(*wanted, *stored);
}

// The names of fields that are not equal on both sides, in order.
std::set<std::string> DifferentFields(const Key& a, const Key& b) {
  std::set<std::string> names;
  const auto collect = [&](const Key& from, const Key& to) {
    for (const auto& [name, value] : from.fields()) {
      const auto other = to.fields().find(name);
      if (other == to.fields().end() || other->second != value) names.insert(name);
    }
  };
  collect(a, b);
  collect(b, a);
  return names;
}

}  // namespace

absl::StatusOr<Key> Key::Parse(std::string_view text) {
  std::string_view rest = text;
  if (!text.starts_with(kHeader)) return Malformed(text, rest, "\"hackc-key 1 \"");
  rest.remove_prefix(kHeader.size());
  const size_t header_end = rest.find('\n');
  if (header_end == rest.npos || !IsName(rest.substr(0, header_end))) {
    return Malformed(text, rest, "a kind and the end of the line");
  }
  KeyBuilder builder(rest.substr(0, header_end));
  rest.remove_prefix(header_end + 1);
  std::string_view last;
  while (!rest.empty()) {
    const size_t open = rest.find('[');
    const size_t close = rest.find("]=");
    size_t length = 0;
    if (open == rest.npos || close == rest.npos || close < open || !IsName(rest.substr(0, open)) ||
        !absl::SimpleAtoi(View(rest.substr(open + 1, close - open - 1)), &length)) {
      return Malformed(text, rest, "name[length]=value");
    }
    const std::string_view name = rest.substr(0, open);
    if (name <= last)
      return Malformed(text, rest, absl::StrCat("a name after \"", View(last), "\""));
    const std::string_view tail = rest.substr(close + 2);
    if (length >= tail.size() || tail[length] != '\n') {
      return Malformed(text, rest,
                       absl::StrCat("a value of ", length, " bytes and the end of the line"));
    }
    builder.Add(name, tail.substr(0, length));
    last = name;
    rest = tail.substr(length + 1);
  }
  Key key = builder.Build();
  // Other spellings of a length ("+5", "05") would give one key two texts.
  if (key.Explain() != text) return Malformed(text, rest, "canonical lengths");
  return key;
}

KeyBuilder::KeyBuilder(std::string_view kind) : kind_(kind) {
  HACKC_CHECK(IsName(kind)) << "key of kind \"" << kind_ << "\": not a name";
}

KeyBuilder& KeyBuilder::Add(std::string_view name, std::string_view value) {
  HACKC_CHECK(IsName(name)) << "key of kind " << kind_ << ": field \"" << name
                            << "\" is not a name";
  HACKC_CHECK(fields_.emplace(name, value).second)
      << "key of kind " << kind_ << ": field " << name << " twice";
  return *this;
}

KeyBuilder& KeyBuilder::Add(std::string_view name, int64_t value) {
  return Add(name, absl::StrCat(value));
}

Key KeyBuilder::Build() const {
  Key key;
  key.kind_ = kind_;
  key.fields_ = fields_;
  key.text_ = absl::StrCat(View(kHeader), kind_, "\n");
  for (const auto& [name, value] : fields_) {
    absl::StrAppend(&key.text_, name, "[", value.size(), "]=", value, "\n");
  }
  key.digest_ = Sha256(key.text_);
  return key;
}

int CountDifferences(const Key& a, const Key& b) {
  return static_cast<int>(DifferentFields(a, b).size()) + (a.kind() == b.kind() ? 0 : 1);
}

std::string ExplainDifference(const Key& wanted, const Key& stored) {
  std::string out = absl::StrCat("wanted ", wanted.kind(), " ", wanted.digest().ToString(),
                                 "\nstored ", stored.kind(), " ", stored.digest().ToString(), "\n");
  if (wanted.digest() == stored.digest()) return absl::StrCat(out, "equal\n");
  const auto find = [](const Key& key, const std::string& name) {
    const auto field = key.fields().find(name);
    return field == key.fields().end() ? nullptr : &field->second;
  };
  for (const std::string& name : DifferentFields(wanted, stored)) {
    absl::StrAppend(&out, name, ": ", ExplainField(find(wanted, name), find(stored, name)));
  }
  return out;
}

}  // namespace hackc::cache
