// SPDX-License-Identifier: MIT
#include "compiler/interp/tensor_interpreter.h"

#include <cmath>
#include <functional>
#include <limits>

#include "compiler/interp/module_run.h"
#include "compiler/interp/scalar_ops.h"
#include "compiler/ir/tensor_walk.h"
#include "compiler/support/internal_error.h"

namespace hackc::interp {
namespace {

using ir::Expr;

// Expressions are turned into closures once per operation, over the coordinates of its axes.
using Coordinates = std::vector<int64_t>;
using Integer = std::function<int64_t(const Coordinates&)>;
using Float = std::function<double(const Coordinates&)>;

class OpRun {
 public:
  OpRun(const ir::TensorOp& op, Environment& environment)
      : op_(op),
        environment_(environment),
        arithmetic_(environment.run().round_to_storage ? Arithmetic::kStorage
                                                       : Arithmetic::kExact) {
    for (const ir::TensorAxis& axis : ir::FreeAxes(op)) Declare(axis);
    free_ = extents_.size();
    for (const ir::TensorAxis& axis : ir::ReducedAxes(op)) Declare(axis);
    at_.resize(extents_.size());
  }

  absl::StatusOr<TensorData> Run() {
    if (const auto* scatter = std::get_if<ir::TensorScatter>(&op_.op)) {
      TensorData* state = environment_.Find(scatter->state);
      HACKC_CHECK(state != nullptr) << "unknown state @" << scatter->state;
      std::vector<Integer> indices;
      for (const Expr& index : scatter->indices) indices.push_back(CompileInteger(index));
      Float value = CompileFloat(scatter->value);
      ForEach(0, free_, [&] { Element(*state, indices, scatter->state) = value(at_); });
      return *state;
    }
    HACKC_ASSIGN_OR_RETURN(TensorData out, environment_.Zeros(op_.type));
    std::function<double()> element = ElementOf();
    size_t position = 0;
    ForEach(0, free_, [&] { out.values[position++] = element(); });
    HACKC_CHECK(position == out.values.size()) << "axes do not cover %" << op_.out;
    return out;
  }

 private:
  void Declare(const ir::TensorAxis& axis) {
    extents_.push_back(CompileInteger(axis.extent));
    slots_[axis.name] = extents_.size() - 1;
  }

  // Runs `body` for every coordinate of the axes from `first` up to `end`, the last one fastest.
  template <typename F>
  void ForEach(size_t first, size_t end, const F& body) {
    if (first == end) return body();
    const int64_t extent = extents_[first](at_);
    for (int64_t i = 0; i < extent; ++i) {
      at_[first] = i;
      ForEach(first + 1, end, body);
    }
  }

  std::function<double()> ElementOf() {
    if (const auto* map = std::get_if<ir::TensorMap>(&op_.op)) return Plain(map->value);
    if (const auto* view = std::get_if<ir::TensorView>(&op_.op)) return Plain(view->source);
    if (const auto* gather = std::get_if<ir::TensorGather>(&op_.op)) return Plain(gather->source);
    if (const auto* contract = std::get_if<ir::TensorContract>(&op_.op)) {
      return [this, a = CompileFloat(contract->a), b = CompileFloat(contract->b)] {
        double sum = 0;
        ForEach(free_, extents_.size(), [&] { sum += a(at_) * b(at_); });
        return sum;
      };
    }
    const auto& reduce = std::get<ir::TensorReduce>(op_.op);
    Float first = CompileFloat(reduce.operands[0]);
    if (reduce.monoid == ir::Monoid::kSoftmaxSum) {
      return [this, first, second = CompileFloat(reduce.operands[1])] {
        return SoftmaxSum(first, second);
      };
    }
    return [this, first, monoid = reduce.monoid] {
      double state = ir::Identity(monoid)[0];
      ForEach(free_, extents_.size(), [&] {
        const double value = first(at_);
        switch (monoid) {
          case ir::Monoid::kSum:
            state += value;
            break;
          case ir::Monoid::kMax:
            state = std::max(state, value);
            break;
          case ir::Monoid::kMin:
            state = std::min(state, value);
            break;
          case ir::Monoid::kProduct:
            state *= value;
            break;
          case ir::Monoid::kSoftmaxSum:
            break;
        }
      });
      return state;
    };
  }

  std::function<double()> Plain(const Expr& e) {
    return [this, value = CompileFloat(e)] { return value(at_); };
  }

  double SoftmaxSum(const Float& score, const Float& value) {
    const double lowest = -std::numeric_limits<double>::infinity();
    double maximum = lowest, sum = 0, accumulator = 0;
    ForEach(free_, extents_.size(), [&] { maximum = std::max(maximum, score(at_)); });
    if (maximum == lowest) return 0;
    ForEach(free_, extents_.size(), [&] {
      const double s = score(at_);
      if (s == lowest) return;  // hidden: its value must not matter, not even as inf * 0
      sum += std::exp(s - maximum);
      accumulator += std::exp(s - maximum) * value(at_);
    });
    return accumulator / sum;
  }

  double& Element(TensorData& data, const std::vector<Integer>& indices, const std::string& name) {
    int64_t offset = 0;
    for (size_t i = 0; i < indices.size(); ++i) {
      const int64_t index = indices[i](at_);
      HACKC_CHECK(index >= 0 && index < data.shape[i])
          << "%" << op_.out << ": index " << i << " of @" << name << " is " << index << " of "
          << data.shape[i];
      offset = offset * data.shape[i] + index;
    }
    return data.values[offset];
  }

  Float CompileLoad(const ir::Load& load) {
    TensorData* data = environment_.Find(load.buffer);
    HACKC_CHECK(data != nullptr && data->shape.size() == load.indices.size())
        << "load of @" << load.buffer;
    std::vector<Integer> indices;
    for (const Expr& index : load.indices) indices.push_back(CompileInteger(index));
    return [this, data, indices, name = load.buffer](const Coordinates&) {
      return Element(*data, indices, name);
    };
  }

  // Integers of any dtype and bools.
  Integer CompileInteger(const Expr& e) {
    if (const auto value = ir::AsInt(e)) return [v = *value](const Coordinates&) { return v; };
    if (const auto* var = ir::As<ir::Var>(e)) {
      const auto slot = slots_.find(var->name);
      HACKC_CHECK(slot != slots_.end()) << "unknown axis %" << var->name;
      return [i = slot->second](const Coordinates& at) { return at[i]; };
    }
    if (const auto* symbol = ir::As<ir::Symbol>(e)) {
      const auto found = environment_.run().symbols.find(symbol->name);
      HACKC_CHECK(found != environment_.run().symbols.end()) << "unknown symbol " << symbol->name;
      return [v = found->second](const Coordinates&) { return v; };
    }
    if (const auto* load = ir::As<ir::Load>(e)) {
      return
          [f = CompileLoad(*load)](const Coordinates& at) { return static_cast<int64_t>(f(at)); };
    }
    if (const auto* select = ir::As<ir::Select>(e)) {
      return
          [c = CompileInteger(select->condition), a = CompileInteger(select->a),
           b = CompileInteger(select->b)](const Coordinates& at) { return c(at) ? a(at) : b(at); };
    }
    if (const auto* cast = ir::As<ir::Cast>(e)) {
      const ir::DType dtype = e->dtype;
      if (!ir::IsFloat(cast->a->dtype)) {
        return [a = CompileInteger(cast->a), dtype](const Coordinates& at) {
          return dtype == ir::DType::kI32 ? static_cast<int32_t>(a(at)) : a(at);
        };
      }
      return [a = CompileFloat(cast->a), dtype](const Coordinates& at) {
        return static_cast<int64_t>(RoundTo(dtype, a(at)));
      };
    }
    if (const auto* unary = ir::As<ir::Unary>(e)) {
      return [a = CompileInteger(unary->a), op = unary->op](const Coordinates& at) {
        return ApplyInteger(op, a(at));
      };
    }
    const auto* binary = ir::As<ir::Binary>(e);
    HACKC_CHECK(binary != nullptr) << "not an integer expression of Tensor IR: " << ir::Print(e);
    if (ir::IsFloat(binary->a->dtype)) {
      return [a = CompileFloat(binary->a), b = CompileFloat(binary->b),
              op = binary->op](const Coordinates& at) {
        return static_cast<int64_t>(CompareFloat(op, a(at), b(at)));
      };
    }
    return [a = CompileInteger(binary->a), b = CompileInteger(binary->b),
            op = binary->op](const Coordinates& at) {
      const auto result = ApplyInteger(op, a(at), b(at));
      HACKC_CHECK(result.has_value()) << "division by zero";
      return *result;
    };
  }

  Float CompileFloat(const Expr& e) {
    if (!ir::IsFloat(e->dtype)) {
      return [a = CompileInteger(e)](const Coordinates& at) { return static_cast<double>(a(at)); };
    }
    if (const auto* literal = ir::As<ir::FloatLiteral>(e)) {
      return [v = literal->value](const Coordinates&) { return v; };
    }
    if (const auto* load = ir::As<ir::Load>(e)) return CompileLoad(*load);
    if (const auto* cast = ir::As<ir::Cast>(e)) {
      return [a = CompileFloat(cast->a), dtype = e->dtype, mode = arithmetic_](
                 const Coordinates& at) { return RoundStored(mode, dtype, a(at)); };
    }
    if (const auto* select = ir::As<ir::Select>(e)) {
      return [c = CompileInteger(select->condition), a = CompileFloat(select->a),
              b = CompileFloat(select->b)](const Coordinates& at) { return c(at) ? a(at) : b(at); };
    }
    if (const auto* unary = ir::As<ir::Unary>(e)) {
      return [a = CompileFloat(unary->a), op = unary->op](const Coordinates& at) {
        return ApplyFloat(op, a(at));
      };
    }
    const auto* binary = ir::As<ir::Binary>(e);
    HACKC_CHECK(binary != nullptr) << "not an expression of Tensor IR: " << ir::Print(e);
    return [a = CompileFloat(binary->a), b = CompileFloat(binary->b),
            op = binary->op](const Coordinates& at) { return ApplyFloat(op, a(at), b(at)); };
  }

  const ir::TensorOp& op_;
  Environment& environment_;
  Arithmetic arithmetic_;
  std::vector<Integer> extents_;  // of the free axes, then of the reduced ones
  size_t free_ = 0;
  std::map<std::string, size_t> slots_;
  Coordinates at_;
};

}  // namespace

absl::StatusOr<std::map<std::string, TensorData>> RunTensor(const ir::TensorModule& module,
                                                            const RunInputs& run) {
  return RunModule(
      module, run,
      [](const ir::TensorOp& op, Environment& environment) -> absl::StatusOr<TensorData> {
        try {
          return OpRun(op, environment).Run();
        } catch (const InternalError& error) {
          return absl::InternalError(error.what());
        }
      });
}

}  // namespace hackc::interp
