// SPDX-License-Identifier: MIT
#include "tests/support/safetensors.h"

#include <bit>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "nlohmann/json.hpp"

namespace hackc::test {
namespace {

static_assert(std::endian::native == std::endian::little);

template <typename T>
double Read(const char* data) {
  T value;
  std::memcpy(&value, data, sizeof(value));
  return static_cast<double>(value);
}

double ReadBFloat16(const char* data) {
  char wide[4] = {0, 0, data[0], data[1]};
  return Read<float>(wide);
}

struct Format {
  ir::DType dtype;
  double (*read)(const char*);
};

const std::map<std::string, Format>& Formats() {
  static const auto* formats = new std::map<std::string, Format>{
      {"F64", {ir::DType::kF64, Read<double>}},   {"F32", {ir::DType::kF32, Read<float>}},
      {"BF16", {ir::DType::kBF16, ReadBFloat16}}, {"F16", {ir::DType::kF16, Read<_Float16>}},
      {"I64", {ir::DType::kI64, Read<int64_t>}},  {"I32", {ir::DType::kI32, Read<int32_t>}}};
  return *formats;
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

absl::StatusOr<Tensors> ReadSafetensors(const std::string& path) {
  HACKC_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  const auto broken = [&](const std::string& what) {
    return absl::DataLossError(absl::StrCat(path, ": ", what));
  };
  uint64_t header_size = 0;
  if (bytes.size() < 8) return broken("shorter than its header length");
  std::memcpy(&header_size, bytes.data(), 8);
  if (header_size > bytes.size() - 8) return broken("header reaches past the end");
  const auto header = nlohmann::json::parse(bytes.substr(8, header_size), nullptr, false);
  if (!header.is_object()) return broken("header is not a JSON object");
  const std::string data = bytes.substr(8 + header_size);
  Tensors tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const auto format = Formats().find(entry.at("dtype"));
    if (format == Formats().end()) return broken(absl::StrCat(name, ": unknown dtype"));
    interp::TensorData tensor{format->second.dtype, entry.at("shape"), {}};
    const size_t begin = entry.at("data_offsets").at(0), end = entry.at("data_offsets").at(1);
    const size_t size = SizeOf(tensor.dtype), count = interp::ElementCount(tensor.shape);
    if (begin > end || end > data.size() || end - begin != count * size) {
      return broken(absl::StrCat(name, ": data offsets do not fit its shape"));
    }
    for (size_t i = 0; i < count; ++i) {
      tensor.values.push_back(format->second.read(data.data() + begin + i * size));
    }
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

}  // namespace hackc::test
