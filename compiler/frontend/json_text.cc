// SPDX-License-Identifier: MIT
#include "compiler/frontend/json_text.h"

#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "compiler/support/cat.h"

namespace hackc::frontend {

using nlohmann::json;

absl::StatusOr<json> ParseJsonObject(const std::string& text, const std::string& path) {
  const auto error = [&](const std::string& what) {
    return absl::InvalidArgumentError(Cat(path, ": ", what));
  };
  if (text.size() > kMaxJsonBytes) {
    return error(Cat("expected at most ", kMaxJsonBytes, " bytes of JSON, got ", text.size()));
  }
  std::string finding;
  std::vector<std::set<std::string>> keys;  // of the objects that are open, by depth
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) {
      if (depth >= kMaxJsonDepth) {
        finding = Cat("expected at most ", kMaxJsonDepth, " levels of nesting");
        return false;  // drops what is deeper
      }
      keys.resize(depth + 1);
      keys.emplace_back();
    } else if (event == json::parse_event_t::key && depth < static_cast<int>(keys.size())) {
      if (!keys[depth].insert(parsed.get<std::string>()).second) {
        finding = Cat("key ", ShortText(parsed), " is given twice");
      }
    }
    return true;
  };
  json value;
  try {
    value = json::parse(text, watch);
  } catch (const json::exception& exception) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    std::string what = exception.what();
    if (const size_t start = what.find("] "); start != what.npos) what = what.substr(start + 2);
    return error(Cat("not JSON: ", absl::CHexEscape(what)));
  }
  if (!finding.empty()) return error(finding);
  if (!value.is_object()) {
    return error(Cat("expected a JSON object, got ", ShortText(value)));
  }
  return value;
}

std::string ShortText(const json& value) {
  constexpr size_t kLength = 60;
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
  if (text.size() > kLength) text = text.substr(0, kLength - 3) + "...";
  return text;
}

}  // namespace hackc::frontend
