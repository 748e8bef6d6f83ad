// SPDX-License-Identifier: MIT
#include "compiler/interp/module_run.h"

#include <cstdlib>
#include <optional>

#include "compiler/interp/scalar_ops.h"

namespace hackc::interp {
namespace {

// An extent's value; nullopt when a symbol is missing or the expression is none of a shape.
std::optional<int64_t> Evaluate(const ir::Expr& e, const std::map<std::string, int64_t>& symbols) {
  if (const std::optional<int64_t> value = ir::AsInt(e)) return value;
  if (const auto* symbol = ir::As<ir::Symbol>(e)) {
    const auto found = symbols.find(symbol->name);
    return found == symbols.end() ? std::nullopt : std::optional(found->second);
  }
  const auto* binary = ir::As<ir::Binary>(e);
  if (binary == nullptr) return std::nullopt;
  const std::optional<int64_t> a = Evaluate(binary->a, symbols), b = Evaluate(binary->b, symbols);
  if (!a || !b) return std::nullopt;
  if (binary->op == ir::BinaryOp::kDiv || binary->op == ir::BinaryOp::kPow) return std::nullopt;
  return ApplyInteger(binary->op, *a, *b);
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> Environment::Shape(const ir::ValueType& type) const {
  std::vector<int64_t> shape;
  for (const ir::Expr& extent : type.shape) {
    const std::optional<int64_t> value = Evaluate(extent, run_.symbols);
    if (!value || *value < 1) {
      return absl::InvalidArgumentError(
          Cat("extent ", ir::Print(extent), ": expected a positive value of the symbols"));
    }
    shape.push_back(*value);
  }
  return shape;
}

absl::StatusOr<TensorData> Environment::Zeros(const ir::ValueType& type) const {
  HACKC_ASSIGN_OR_RETURN(std::vector<int64_t> shape, Shape(type));
  return TensorData::Zeros(type.dtype, std::move(shape));
}

absl::Status Environment::Check(const std::string& what, const ir::ValueType& type,
                                const TensorData& data) const {
  HACKC_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, Shape(type));
  if (shape == data.shape && ElementCount(shape) == data.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(Cat(what, ": expected ", ShapeText(type.dtype, shape), ", got ",
                                        ShapeText(data.dtype, data.shape)));
}

absl::Status Environment::AddSource(const ir::SourceDecl& source, int layer) {
  using Kind = ir::SourceDecl::Kind;
  const std::string name = WithLayer(source.weight_name, layer);
  TensorData data;
  switch (source.kind) {
    case Kind::kInput: {
      const auto found = run_.inputs.find(source.name);
      if (found == run_.inputs.end()) {
        return absl::InvalidArgumentError(Cat("input ", source.name, ": is missing"));
      }
      data = found->second;
      HACKC_RETURN_IF_ERROR(Check("input " + source.name, source.type, data));
      break;
    }
    case Kind::kWeight: {
      if (!run_.weights) return absl::InvalidArgumentError("weights: none are given");
      HACKC_ASSIGN_OR_RETURN(const TensorData* weight, run_.weights(name));
      data = *weight;
      HACKC_RETURN_IF_ERROR(Check("weight " + name, source.type, data));
      break;
    }
    case Kind::kConstant: {
      HACKC_ASSIGN_OR_RETURN(data.shape, Shape(source.type));
      data.values = source.data;
      HACKC_RETURN_IF_ERROR(Check("constant " + source.name, source.type, data));
      break;
    }
    case Kind::kState: {
      if (run_.states == nullptr) return absl::InvalidArgumentError("states: none are given");
      HACKC_ASSIGN_OR_RETURN(TensorData fresh, Zeros(source.type));
      TensorData& state = run_.states->try_emplace(name, std::move(fresh)).first->second;
      HACKC_RETURN_IF_ERROR(Check("state " + name, source.type, state));
      states_[source.name] = &state;
      return absl::OkStatus();
    }
  }
  data.dtype = source.type.dtype;
  if (run_.round_to_storage) data.Round();
  Set(source.name, std::move(data));
  return absl::OkStatus();
}

TensorData* Environment::Find(const std::string& name) {
  if (const auto state = states_.find(name); state != states_.end()) return state->second;
  const auto value = values_.find(name);
  return value == values_.end() ? nullptr : &value->second;
}

void Environment::Finish(const std::string& name, int layer, TensorData data) {
  if (run_.round_to_storage) data.Round();
  if (run_.observe) run_.observe(name, layer, data);
  Set(name, std::move(data));
}

std::string WithLayer(const std::string& name, int layer) {
  static constexpr std::string_view kOpen = "{layer";
  std::string text = name;
  for (size_t at = text.find(kOpen); at != text.npos; at = text.find(kOpen, at)) {
    const size_t close = text.find('}', at);
    if (close == text.npos) break;
    const int offset = std::atoi(text.substr(at + kOpen.size(), close - at).c_str());  // "+1"
    text.replace(at, close + 1 - at, std::to_string(layer + offset));
  }
  return text;
}

}  // namespace hackc::interp
