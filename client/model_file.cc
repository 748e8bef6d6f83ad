// SPDX-License-Identifier: MIT
#include "client/model_file.h"

#include <google/protobuf/util/json_util.h>

#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/json_text.h"
#include "client/runtime/files.h"
#include "compiler/support/status_macros.h"

namespace hackc::client {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

absl::Status Refuse(absl::string_view origin, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(origin, ": ", why));
}

// protobuf says "(seq.min): invalid value \"x\" for type TYPE_INT64"; the parentheses go.
std::string ProtobufReason(absl::string_view message) {
  std::string text(message.substr(0, 300));
  if (!text.empty() && text[0] == '(') {
    if (size_t end = text.find(')'); end != text.npos) {
      text = text.substr(1, end - 1) + text.substr(end + 1);
    }
  }
  return std::string(absl::StripAsciiWhitespace(text));
}

template <typename Message>
absl::Status FromJson(absl::string_view text, absl::string_view origin, Message* message) {
  auto status = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(text.data(), text.size()), message);
  if (status.ok()) return absl::OkStatus();
  auto reason = status.message();
  return Refuse(origin, ProtobufReason({reason.data(), reason.size()}));
}

}  // namespace

absl::StatusOr<v1::ModelDescription> ParseModel(absl::string_view text, absl::string_view origin,
                                                absl::string_view default_name) {
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");  // a byte order mark
  absl::StatusOr<json> parsed = ParseJson(text, {.bytes = kMaxModelFileBytes});
  if (!parsed.ok()) return Refuse(origin, parsed.status().message());
  const json& document = *parsed;
  if (!document.is_object()) {
    return Refuse(origin, absl::StrCat("expected a JSON object, got ", document.type_name()));
  }
  v1::ModelDescription model;
  if (document.contains("model_type") || document.contains("architectures")) {
    HACKC_RETURN_IF_ERROR(FromJson(text, origin, model.mutable_config()));
  } else if (document.contains("config")) {
    if (!document["config"].is_object()) {
      return Refuse(origin, absl::StrCat("config: expected a JSON object, got ",
                                         document["config"].type_name()));
    }
    HACKC_RETURN_IF_ERROR(FromJson(text, origin, &model));
  } else {
    return Refuse(
        origin,
        "expected a Hugging Face config.json (has \"model_type\" or \"architectures\") or "
        "a ModelDescription (has \"config\")");
  }
  if (model.name().empty()) model.set_name(std::string(default_name));
  return model;
}

absl::StatusOr<v1::ModelDescription> ReadModelFile(const std::string& path) {
  fs::path file(path);
  std::error_code error;
  if (fs::is_directory(file, error)) {
    file /= "config.json";
    if (!fs::exists(file, error)) {
      return Refuse(path, "the folder has no config.json");
    }
  }
  absl::StatusOr<std::string> text = ReadFile(file, kMaxModelFileBytes);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  // "qwen2.5-7b.json" is named by its stem, "TinyLlama/config.json" by its folder.
  fs::path full = fs::absolute(file, error).lexically_normal();
  std::string name = full.filename() == "config.json" ? full.parent_path().filename().string()
                                                      : full.stem().string();
  return ParseModel(*text, file.string(), name);
}

}  // namespace hackc::client
