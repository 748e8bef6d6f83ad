// SPDX-License-Identifier: MIT
// Runs Module<Op>: resolves shapes and sources, repeats segments, carries values. Shared by the
// Graph and Tensor interpreters; a level adds how it evaluates one operation.
//
// Thread safety: one run, one thread.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/interp/run_inputs.h"
#include "compiler/ir/value.h"
#include "compiler/support/cat.h"
#include "compiler/support/status_macros.h"

namespace hackc::interp {

// Values that are seen at one place of a run. States are referred to, not held: writing one updates
// the run's.
class Environment {
 public:
  explicit Environment(const RunInputs& run) : run_(run) {}

  const RunInputs& run() const { return run_; }
  // INVALID_ARGUMENT when a symbol is missing, or an extent is not positive.
  absl::StatusOr<std::vector<int64_t>> Shape(const ir::ValueType& type) const;
  absl::StatusOr<TensorData> Zeros(const ir::ValueType& type) const;

  // Makes a source seen; `layer` replaces "{layer}".
  absl::Status AddSource(const ir::SourceDecl& source, int layer);
  void Set(const std::string& name, TensorData data) { values_[name] = std::move(data); }
  // Null when not seen.
  TensorData* Find(const std::string& name);
  // Rounds if the run asks for it, tells the observer, and makes the value seen.
  void Finish(const std::string& name, int layer, TensorData data);

 private:
  absl::Status Check(const std::string& what, const ir::ValueType& type,
                     const TensorData& data) const;

  const RunInputs& run_;
  std::map<std::string, TensorData> values_;
  std::map<std::string, TensorData*> states_;
};

// "model.layers.{layer+1}.norm" at layer 4 is "model.layers.5.norm".
std::string WithLayer(const std::string& name, int layer);

// `evaluate(const Op&, Environment&) -> absl::StatusOr<TensorData>` computes one operation's value.
template <typename Op, typename Evaluate>
absl::StatusOr<std::map<std::string, TensorData>> RunModule(const ir::Module<Op>& module,
                                                            const RunInputs& run,
                                                            Evaluate&& evaluate) {
  Environment outside(run);
  for (const ir::SymbolDecl& symbol : module.symbols) {
    const auto value = run.symbols.find(symbol.name);
    if (value == run.symbols.end() || value->second < symbol.min || value->second > symbol.max) {
      return absl::InvalidArgumentError(
          Cat("symbol ", symbol.name, ": expected a value in ", symbol.min, "..", symbol.max));
    }
  }
  for (const ir::SourceDecl& source : module.sources) {
    HACKC_RETURN_IF_ERROR(outside.AddSource(source, 0));
  }
  const auto copy = [](Environment& from, const std::string& name) -> absl::StatusOr<TensorData> {
    if (const TensorData* data = from.Find(name)) return *data;
    return absl::InvalidArgumentError(Cat("%", name, ": is not defined"));
  };
  for (const ir::Segment<Op>& segment : module.segments) {
    std::vector<TensorData> carried;
    for (const ir::Carry& carry : segment.carries) {
      HACKC_ASSIGN_OR_RETURN(TensorData initial, copy(outside, carry.initial));
      carried.push_back(std::move(initial));
    }
    for (int i = 0; i < segment.count; ++i) {
      const int layer = segment.first_layer + i * segment.layer_step;
      Environment inside = outside;
      for (size_t c = 0; c < carried.size(); ++c) {
        inside.Set(segment.carries[c].name, std::move(carried[c]));
      }
      for (const ir::SourceDecl& source : segment.sources) {
        HACKC_RETURN_IF_ERROR(inside.AddSource(source, layer));
      }
      for (const Op& op : segment.ops) {
        HACKC_ASSIGN_OR_RETURN(TensorData data, evaluate(op, inside));
        inside.Finish(op.out, layer, std::move(data));
      }
      carried.clear();
      for (const std::string& name : segment.yields) {
        HACKC_ASSIGN_OR_RETURN(TensorData data, copy(inside, name));
        carried.push_back(std::move(data));
      }
    }
    for (size_t r = 0; r < segment.results.size(); ++r) {
      outside.Set(segment.results[r], std::move(carried[r]));
    }
  }
  std::map<std::string, TensorData> outputs;
  for (const std::string& name : module.outputs) {
    HACKC_ASSIGN_OR_RETURN(outputs[name], copy(outside, name));
  }
  return outputs;
}

}  // namespace hackc::interp
