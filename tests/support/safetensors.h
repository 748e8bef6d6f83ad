// SPDX-License-Identifier: MIT
// Reads a safetensors file whole: an 8-byte little-endian header length, a JSON header, raw data.
//
//   ASSIGN(tensors, ReadSafetensors("model.safetensors"));
//   tensors.at("lm_head.weight").At({3, 0});
//
// Thread safety: a pure function.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/interp/tensor_data.h"

namespace hackc::test {

using Tensors = std::map<std::string, interp::TensorData>;

absl::StatusOr<Tensors> ReadSafetensors(const std::string& path);
absl::StatusOr<std::string> ReadFile(const std::string& path);

}  // namespace hackc::test
