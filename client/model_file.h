// SPDX-License-Identifier: MIT
// Turns the MODEL argument of the command line into the message that a server gets. MODEL is one of
//   - a Hugging Face config.json (its top level has "model_type" or "architectures"),
//   - a folder that holds a config.json,
//   - a ModelDescription in protobuf JSON (its top level has "config").
// Only the file's form is judged here; what the sizes in it mean is the server's to judge.
//
//   HACKC_ASSIGN_OR_RETURN(v1::ModelDescription model, ReadModelFile("models/qwen2.5-7b.json"));
//
// Thread safety: pure functions of their argument and the file system.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "hackc/v1/model.pb.h"

namespace hackc::client {

// The server's limit too. The longest public config.json (id2label of a large classifier) is far
// below.
inline constexpr size_t kMaxModelFileBytes = 1u << 20;

// INVALID_ARGUMENT naming the file and what is wrong with it: missing, unreadable, not JSON, ...
absl::StatusOr<v1::ModelDescription> ReadModelFile(const std::string& path);

// `origin` names the text in errors; `default_name` is the model's name when the text gives none.
absl::StatusOr<v1::ModelDescription> ParseModel(absl::string_view text, absl::string_view origin,
                                                absl::string_view default_name);

}  // namespace hackc::client
