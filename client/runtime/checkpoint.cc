// SPDX-License-Identifier: MIT
#include "client/runtime/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json_text.h"
#include "client/runtime/files.h"
#include "compiler/support/status_macros.h"

namespace hackc::client {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kSingleFile[] = "model.safetensors";
constexpr char kIndexFile[] = "model.safetensors.index.json";
constexpr size_t kMaxIndexBytes = 64u << 20;
constexpr size_t kShownNames = 20;  // of what is missing

// Tensor name -> file name.
absl::StatusOr<std::map<std::string, std::string>> ReadIndex(const fs::path& path) {
  HACKC_ASSIGN_OR_RETURN(std::string text, ReadFile(path, kMaxIndexBytes));
  absl::StatusOr<json> parsed = ParseJson(text, {.depth = 8});
  auto refuse = [&](const std::string& why) {
    return absl::DataLossError(absl::StrCat(path.string(), ": ", why));
  };
  if (!parsed.ok()) return refuse(std::string(parsed.status().message()));
  const json& index = *parsed;
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    return refuse("expected a JSON object with \"weight_map\"");
  }
  std::map<std::string, std::string> files;
  for (const auto& [name, file] : index["weight_map"].items()) {
    if (!file.is_string()) return refuse(absl::StrCat("weight_map.", name, " is no file name"));
    files[name] = file.get<std::string>();
    // A shard lies beside its index; the system would read its name to the first NUL.
    const std::string& shard = files[name];
    if (fs::path(shard).filename() != shard || shard.empty() || shard == "." || shard == ".." ||
        shard.find('\0') != shard.npos) {
      return refuse(
          absl::StrCat("weight_map.", name, ": '", absl::CHexEscape(shard), "' leaves the folder"));
    }
  }
  return files;
}

bool SameContent(const StoredTensor& a, const StoredTensor& b) {
  return a.dtype_text == b.dtype_text && a.shape == b.shape &&
         std::memcmp(a.data, b.data, a.bytes) == 0;
}

std::string Describe(const std::string& dtype, const std::vector<int64_t>& shape) {
  return absl::StrCat(dtype, " [", absl::StrJoin(shape, ", "), "]");
}

absl::Status Bind(Runtime& runtime, const WeightInfo& weight, const StoredTensor& tensor) {
  if (tensor.shape != weight.shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        "weight ", weight.name, ": expected shape [", absl::StrJoin(weight.shape, ", "),
        "], the file has ", Describe(tensor.dtype_text, tensor.shape)));
  }
  absl::Status bound = runtime.BindWeight(weight.name, {tensor.data, tensor.dtype, tensor.shape,
                                                        /*on_device=*/false, /*convert=*/true});
  if (absl::IsInvalidArgument(bound)) {
    return absl::InvalidArgumentError(
        absl::StrCat(bound.message(), "; the file has ", tensor.dtype_text));
  }
  return bound;
}

}  // namespace

absl::StatusOr<Checkpoint> Checkpoint::Open(const fs::path& directory) {
  Checkpoint checkpoint;
  std::map<std::string, std::string> index;
  std::set<std::string> names;
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    return absl::NotFoundError(absl::StrCat(
        directory.string(), fs::exists(directory, error) ? ": not a folder" : ": no such folder"));
  }
  const bool sharded = fs::exists(directory / kIndexFile, error);
  if (sharded) {
    HACKC_ASSIGN_OR_RETURN(index, ReadIndex(directory / kIndexFile));
    for (const auto& [name, file] : index) names.insert(file);
  } else if (fs::exists(directory / kSingleFile, error)) {
    names.insert(kSingleFile);
  } else {
    return absl::NotFoundError(
        absl::StrCat(directory.string(), ": has neither ", kSingleFile, " nor ", kIndexFile));
  }
  for (const std::string& name : names) {
    HACKC_ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsFile> file,
                           SafetensorsFile::Open(directory / name));
    for (const StoredTensor& tensor : file->tensors()) {
      if (!checkpoint.tensors_.emplace(tensor.name, &tensor).second) {
        return absl::DataLossError(
            absl::StrCat(directory.string(), ": tensor ", tensor.name, " is in two files"));
      }
    }
    checkpoint.files_.push_back(std::move(file));
  }
  for (const auto& [name, file] : index) {
    if (checkpoint.Find(name) == nullptr) {
      return absl::DataLossError(absl::StrCat((directory / file).string(), ": has no tensor ", name,
                                              ", which the index says is in it"));
    }
  }
  return checkpoint;
}

const StoredTensor* Checkpoint::Find(const std::string& name) const {
  auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : found->second;
}

absl::StatusOr<std::vector<std::string>> Checkpoint::BindTo(Runtime& runtime,
                                                            const Progress& progress) const {
  std::map<std::string, const WeightInfo*> wanted;
  std::vector<std::string> missing;
  int64_t total = 0;
  for (const WeightInfo& weight : runtime.weights()) {
    wanted[weight.name] = &weight;
    const StoredTensor* tensor = Find(weight.name);
    if (tensor == nullptr) missing.push_back(weight.name);
    if (tensor != nullptr) total += tensor->bytes;
  }
  if (!missing.empty()) {
    const size_t count = missing.size(), shown = std::min(count, kShownNames);
    missing.resize(shown);
    return absl::NotFoundError(
        absl::StrCat(count, " weights are missing: ", absl::StrJoin(missing, ", "),
                     count > shown ? absl::StrCat(" and ", count - shown, " more") : ""));
  }
  int64_t done = 0;
  std::vector<const StoredTensor*> bound, spare;
  for (const auto& file : files_) {
    for (const StoredTensor& tensor : file->tensors()) {
      auto weight = wanted.find(tensor.name);
      if (weight == wanted.end()) {
        spare.push_back(&tensor);
        continue;
      }
      HACKC_RETURN_IF_ERROR(Bind(runtime, *weight->second, tensor));
      bound.push_back(&tensor);
      done += tensor.bytes;
      if (progress && !progress(done, total)) {
        return absl::CancelledError(
            absl::StrCat("loading stopped after ", done, " of ", total, " bytes of weights"));
      }
    }
  }
  std::vector<std::string> unused;
  for (const StoredTensor* tensor : spare) {
    bool known = absl::EndsWith(tensor->name, ".rotary_emb.inv_freq") ||
                 std::any_of(bound.begin(), bound.end(), [&](const StoredTensor* other) {
                   return SameContent(*tensor, *other);
                 });
    if (!known) unused.push_back(tensor->name);
  }
  return unused;
}

}  // namespace hackc::client
