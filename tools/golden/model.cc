// SPDX-License-Identifier: MIT
#include "tools/golden/model.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>

#include "client/runtime/float_convert.h"
#include "client/runtime/safetensors.h"
#include "compiler/support/cat.h"
#include "compiler/support/status_macros.h"

namespace hackc::golden {
namespace {

template <typename T>
double Element(const char* data) {
  T value;
  std::memcpy(&value, data, sizeof(value));
  return static_cast<double>(value);
}

double ElementOf(ir::DType dtype, const char* data) {
  uint16_t bits;
  switch (dtype) {
    case ir::DType::kF64: return Element<double>(data);
    case ir::DType::kF32: return Element<float>(data);
    case ir::DType::kBF16: std::memcpy(&bits, data, 2); return client::BFloat16ToFloat(bits);
    case ir::DType::kF16: std::memcpy(&bits, data, 2); return client::Float16ToFloat(bits);
    case ir::DType::kI64: return Element<int64_t>(data);
    case ir::DType::kI32: return Element<int32_t>(data);
    case ir::DType::kBool: return Element<uint8_t>(data);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

absl::StatusOr<Tensors> ReadTensors(const std::filesystem::path& path) {
  static const std::map<std::string, ir::DType> kDTypes = {
      {"F64", ir::DType::kF64}, {"F32", ir::DType::kF32}, {"BF16", ir::DType::kBF16},
      {"F16", ir::DType::kF16}, {"I64", ir::DType::kI64}, {"I32", ir::DType::kI32}};
  HACKC_ASSIGN_OR_RETURN(const auto file, client::SafetensorsFile::Open(path));
  Tensors tensors;
  for (const client::StoredTensor& stored : file->tensors()) {
    const auto dtype = kDTypes.find(stored.dtype_text);
    if (dtype == kDTypes.end()) {
      return absl::DataLossError(
          Cat(path.string(), ": tensor ", stored.name, " is of dtype ", stored.dtype_text));
    }
    tensors[stored.name] = {dtype->second, stored.shape,
                            Elements(dtype->second, reinterpret_cast<const char*>(stored.data),
                                     interp::ElementCount(stored.shape))};
  }
  return tensors;
}

}  // namespace

std::function<absl::StatusOr<const interp::TensorData*>(const std::string&)> Model::WeightsByName()
    const {
  return [this](const std::string& name) -> absl::StatusOr<const interp::TensorData*> {
    const auto found = weights.find(name);
    if (found == weights.end()) return absl::NotFoundError(Cat("no weight ", name));
    return &found->second;
  };
}

absl::StatusOr<Model> ReadModel(const std::filesystem::path& folder) {
  Model model;
  model.name = (folder / "").parent_path().filename().string();  // also of "llama/"
  const std::filesystem::path config = folder / "config.json";
  std::ifstream file(config, std::ios::binary);
  if (!file) return absl::NotFoundError(Cat(config.string(), ": cannot be read"));
  model.config_json.assign(std::istreambuf_iterator<char>(file), {});
  HACKC_ASSIGN_OR_RETURN(model.weights, ReadTensors(folder / "model.safetensors"));
  HACKC_ASSIGN_OR_RETURN(model.expected, ReadTensors(folder / "expected.safetensors"));
  return model;
}

std::vector<double> Elements(ir::DType dtype, const char* data, int64_t count) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(ElementOf(dtype, data + i * SizeOf(dtype)));
  return values;
}

double Difference(const std::vector<double>& actual, const std::vector<double>& truth) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (actual.size() != truth.size() || truth.empty()) return kInfinity;
  double squares = 0, true_squares = 0, largest = 0, true_largest = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    const double error = actual[i] - truth[i];
    if (!std::isfinite(error)) return kInfinity;
    squares += error * error;
    true_squares += truth[i] * truth[i];
    largest = std::max(largest, std::abs(error));
    true_largest = std::max(true_largest, std::abs(truth[i]));
  }
  if (largest == 0) return 0;  // also of zeros
  return std::max(std::sqrt(squares / true_squares), largest / true_largest);
}

}  // namespace hackc::golden
