// SPDX-License-Identifier: MIT
// The weights of a Hugging Face folder (model.safetensors, or shards with
// model.safetensors.index.json), bound to a program: names and shapes checked, floats converted to
// the program's dtype on their way to the GPU. The files are mapped, and no tensor is ever whole in
// other host memory (uploader.h).
//
//   HACKC_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open("Qwen2.5-7B"));
//   HACKC_ASSIGN_OR_RETURN(std::vector<std::string> unused, checkpoint.BindTo(*runtime));
//
// Thread safety: immutable once open.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/runtime/runtime.h"
#include "client/runtime/safetensors.h"

namespace hackc::client {

class Checkpoint {
 public:
  // NOT_FOUND without weights in the folder; DATA_LOSS when the index and the files disagree.
  static absl::StatusOr<Checkpoint> Open(const std::filesystem::path& directory);

  // Null when there is none.
  const StoredTensor* Find(const std::string& name) const;
  size_t size() const { return tensors_.size(); }

  // False ends the loading.
  using Progress = std::function<bool(int64_t bytes_done, int64_t bytes_total)>;
  // Binds every weight of the program, in the order of the files. Returns the tensors that the
  // program has no use for, without those that repeat a bound one (a tied head that was saved
  // twice) and without buffers that older versions of transformers saved. NOT_FOUND names the
  // missing weights; CANCELLED by `progress`.
  absl::StatusOr<std::vector<std::string>> BindTo(Runtime& runtime,
                                                  const Progress& progress = nullptr) const;

 private:
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, const StoredTensor*> tensors_;
};

}  // namespace hackc::client
