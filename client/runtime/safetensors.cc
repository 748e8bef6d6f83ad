// SPDX-License-Identifier: MIT
#include "client/runtime/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json_text.h"
#include "compiler/support/status_macros.h"

namespace hackc::client {
namespace {

using nlohmann::json;

// The format's own limit.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kMaxRank = 32;  // models reach 5; numpy's limit is 64

struct Kind {
  v1::DType dtype;
  int64_t bytes;
};

const std::map<std::string, Kind>& Kinds() {
  static const auto* kinds = new std::map<std::string, Kind>{
      {"F32", {v1::DTYPE_FLOAT32, 4}},        {"BF16", {v1::DTYPE_BFLOAT16, 2}},
      {"F16", {v1::DTYPE_FLOAT16, 2}},        {"F64", {v1::DTYPE_FLOAT64, 8}},
      {"I64", {v1::DTYPE_INT64, 8}},          {"I32", {v1::DTYPE_INT32, 4}},
      {"BOOL", {v1::DTYPE_BOOL, 1}},          {"I16", {v1::DTYPE_UNSPECIFIED, 2}},
      {"I8", {v1::DTYPE_UNSPECIFIED, 1}},     {"U8", {v1::DTYPE_UNSPECIFIED, 1}},
      {"U16", {v1::DTYPE_UNSPECIFIED, 2}},    {"U32", {v1::DTYPE_UNSPECIFIED, 4}},
      {"U64", {v1::DTYPE_UNSPECIFIED, 8}},    {"F8_E4M3", {v1::DTYPE_UNSPECIFIED, 1}},
      {"F8_E5M2", {v1::DTYPE_UNSPECIFIED, 1}}};
  return *kinds;
}

// Non-negative numbers only.
bool ReadInts(const json& list, std::vector<int64_t>* values) {
  if (!list.is_array()) return false;
  for (const json& value : list) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > INT64_MAX) return false;
    values->push_back(value.get<int64_t>());
  }
  return true;
}

// Empty when all is well.
std::string ReadTensor(const json& entry, const std::byte* data, int64_t data_bytes,
                       StoredTensor* tensor) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string()) {
    return "no dtype";
  }
  tensor->dtype_text = entry["dtype"].get<std::string>();
  auto kind = Kinds().find(tensor->dtype_text);
  if (kind == Kinds().end()) return absl::StrCat("unknown dtype '", tensor->dtype_text, "'");
  tensor->dtype = kind->second.dtype;
  std::vector<int64_t> offsets;
  if (!entry.contains("shape") || !ReadInts(entry["shape"], &tensor->shape)) return "bad shape";
  if (!entry.contains("data_offsets") || !ReadInts(entry["data_offsets"], &offsets) ||
      offsets.size() != 2) {
    return "bad data_offsets";
  }
  int64_t bytes = kind->second.bytes;
  for (int64_t extent : tensor->shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return "shape exceeds 64 bits";
  }
  if (offsets[0] > offsets[1] || offsets[1] > data_bytes) {
    return absl::StrCat("bytes ", offsets[0], "..", offsets[1], " are outside the file's ",
                        data_bytes, " bytes of data");
  }
  tensor->bytes = offsets[1] - offsets[0];
  if (tensor->bytes != bytes) {
    return absl::StrCat("shape needs ", bytes, " bytes, data_offsets give ", tensor->bytes);
  }
  tensor->data = data + offsets[0];
  return "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<SafetensorsFile>> SafetensorsFile::Open(
    const std::filesystem::path& path) {
  const std::string name = path.string();
  // A pipe of this name is refused below, not waited for.
  int descriptor = open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    return absl::NotFoundError(absl::StrCat(name, ": ", std::strerror(errno)));
  }
  std::unique_ptr<SafetensorsFile> file(new SafetensorsFile);
  struct stat facts {};
  bool regular = fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size >= 8;
  void* mapping = MAP_FAILED;
  if (regular) mapping = mmap(nullptr, facts.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int map_error = errno;
  close(descriptor);
  if (!regular) return absl::DataLossError(absl::StrCat(name, ": not a safetensors file"));
  if (mapping == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name, ": cannot be mapped: ", std::strerror(map_error)));
  }
  file->mapping_ = mapping;
  file->mapped_bytes_ = facts.st_size;
  madvise(mapping, facts.st_size, MADV_SEQUENTIAL);
  const auto* bytes = static_cast<const std::byte*>(mapping);
  uint64_t header = 0;
  std::memcpy(&header, bytes, 8);  // little-endian, as every machine with a supported GPU is
  if (header > kMaxHeaderBytes || header > file->mapped_bytes_ - 8) {
    return absl::DataLossError(absl::StrCat(name, ": the header's length ", header,
                                            " is outside a file of ", file->mapped_bytes_,
                                            " bytes"));
  }
  absl::Status read =
      file->ReadHeader({reinterpret_cast<const char*>(bytes + 8), header}, bytes + 8 + header,
                       static_cast<int64_t>(file->mapped_bytes_ - 8 - header));
  if (!read.ok()) return absl::DataLossError(absl::StrCat(name, ": ", read.message()));
  return file;
}

absl::Status SafetensorsFile::ReadHeader(absl::string_view header, const std::byte* data,
                                         int64_t data_bytes) {
  // A tensor's shape lies three levels deep.
  absl::StatusOr<json> parsed = ParseJson(header, {.depth = 3, .elements = kMaxRank});
  if (!parsed.ok() || !parsed->is_object()) {
    return absl::DataLossError(absl::StrCat("the header is no JSON object of tensors",
                                            parsed.ok() ? "" : ": ", parsed.status().message()));
  }
  for (const auto& [name, entry] : parsed->items()) {
    if (name == "__metadata__") {
      bool texts =
          entry.is_object() && std::all_of(entry.begin(), entry.end(),
                                           [](const json& value) { return value.is_string(); });
      if (!texts) return absl::DataLossError("__metadata__ is no JSON object of strings");
      continue;
    }
    StoredTensor tensor;
    tensor.name = name;
    if (std::string wrong = ReadTensor(entry, data, data_bytes, &tensor); !wrong.empty()) {
      return absl::DataLossError(absl::StrCat("tensor ", name, ": ", wrong));
    }
    tensors_.push_back(std::move(tensor));
  }
  std::stable_sort(tensors_.begin(), tensors_.end(),
                   [](const StoredTensor& a, const StoredTensor& b) {
                     return std::make_pair(a.data, a.bytes) < std::make_pair(b.data, b.bytes);
                   });
  // They share no byte and leave none out: a byte belongs to the one tensor that the header says.
  int64_t end = 0;
  for (const StoredTensor& tensor : tensors_) {
    if (tensor.data - data != end) {
      return absl::DataLossError(absl::StrCat("tensor ", tensor.name, ": begins at byte ",
                                              tensor.data - data, ", the one before ends at ",
                                              end));
    }
    end += tensor.bytes;
  }
  if (end != data_bytes) {
    return absl::DataLossError(
        absl::StrCat("the tensors end at byte ", end, " of ", data_bytes, " bytes of data"));
  }
  return absl::OkStatus();
}

SafetensorsFile::~SafetensorsFile() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_bytes_);
}

}  // namespace hackc::client
