// SPDX-License-Identifier: MIT
// What one run of a Graph or Tensor module is given, and what it may report. Shared by both
// interpreters.
//
// Thread safety: plain values; `weights` and `observe` are called on the caller's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/interp/tensor_data.h"

namespace hackc::interp {

struct RunInputs {
  std::map<std::string, int64_t> symbols;    // batch, seq, past
  std::map<std::string, TensorData> inputs;  // by source name
  // A tensor of the checkpoint by its name ("{layer}" replaced). The pointer stays valid during the
  // run.
  std::function<absl::StatusOr<const TensorData*>(const std::string& weight_name)> weights;
  // State by its name ("{layer}" replaced), updated in place; one that is absent starts as zeros.
  // May be null for a module without state.
  std::map<std::string, TensorData>* states = nullptr;
  // Round weights, constants and each operation's output to their dtypes; otherwise all is float64.
  bool round_to_storage = false;
  // Sees every value as it is made; `layer` is the first layer of the segment's current iteration.
  std::function<void(const std::string& value, int layer, const TensorData& data)> observe;
};

}  // namespace hackc::interp
