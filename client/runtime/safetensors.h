// SPDX-License-Identifier: MIT
// A safetensors file mapped into memory: eight bytes of header length (little-endian), a JSON
// header with dtype, shape and data_offsets of each tensor, then the tensors' bytes. Nothing is
// copied; everything that a damaged or hostile header could say is checked before a tensor is
// handed out.
//
//   HACKC_ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsFile> file,
//                          SafetensorsFile::Open("model.safetensors"));
//   for (const StoredTensor& tensor : file->tensors()) ...
//
// The file must not be cut short while it is mapped. Thread safety: immutable once open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "hackc/v1/model.pb.h"

namespace hackc::client {

// `data` lives as long as its file and has no alignment.
struct StoredTensor {
  std::string name;
  v1::DType dtype = v1::DTYPE_UNSPECIFIED;  // unspecified: a kind of number that no program takes
  std::string dtype_text;                   // "BF16", as the file says it
  std::vector<int64_t> shape;
  const std::byte* data = nullptr;
  int64_t bytes = 0;
};

class SafetensorsFile {
 public:
  // NOT_FOUND, or DATA_LOSS with the path and what is wrong in the file.
  static absl::StatusOr<std::unique_ptr<SafetensorsFile>> Open(const std::filesystem::path& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  // In the order of their bytes, so that reading them in turn reads the file from end to end.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }

 private:
  SafetensorsFile() = default;
  absl::Status ReadHeader(absl::string_view header, const std::byte* data, int64_t data_bytes);

  void* mapping_ = nullptr;
  size_t mapped_bytes_ = 0;
  std::vector<StoredTensor> tensors_;
};

}  // namespace hackc::client
