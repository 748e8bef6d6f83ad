// SPDX-License-Identifier: MIT
// A golden model: a folder with config.json, model.safetensors and expected.safetensors, as
// tests/data/golden/README.md describes it, and the distance that every check of it measures.
//
//   HACKC_ASSIGN_OR_RETURN(Model model, ReadModel("tests/data/golden/llama"));
//   Difference(logits, model.expected.at("logits").values) <= kTruthTolerance;
//
// Thread safety: pure functions.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/interp/tensor_data.h"

namespace hackc::golden {

using Tensors = std::map<std::string, interp::TensorData>;

struct Model {
  std::string name;  // of the folder
  std::string config_json;
  Tensors weights;
  Tensors expected;

  // `weights` by name, for RunInputs; the model must outlive it.
  std::function<absl::StatusOr<const interp::TensorData*>(const std::string&)> WeightsByName()
      const;
};

// NOT_FOUND, or DATA_LOSS with the file and what is wrong in it.
absl::StatusOr<Model> ReadModel(const std::filesystem::path& folder);

// `count` elements that lie densely at `data`, which needs no alignment.
std::vector<double> Elements(ir::DType dtype, const char* data, int64_t count);

// The larger of the relative Frobenius distance and the largest error relative to the largest true
// value; infinity when sizes differ or a value is not finite.
double Difference(const std::vector<double>& actual, const std::vector<double>& truth);

}  // namespace hackc::golden
