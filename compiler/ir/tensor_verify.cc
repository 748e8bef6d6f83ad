// SPDX-License-Identifier: MIT
#include "compiler/ir/tensor_verify.h"

#include "compiler/ir/bounds_proof.h"
#include "compiler/ir/module_text.h"
#include "compiler/ir/module_verify.h"
#include "compiler/ir/rewrite.h"

namespace hackc::ir {
namespace {

class OpVerifier {
 public:
  OpVerifier(const TensorOp& op, const std::vector<SymbolDecl>& symbols, ModuleVerifier& module,
             std::set<std::string>& updated, std::set<std::string>& states)
      : op_(op), module_(module), updated_(updated), states_(states), prover_(symbols) {}

  void Verify() {
    if (!IsName(op_.label)) Error("label", "\"", op_.label, "\" is not a name");
    for (const std::string& value : ValuesRead(op_)) {
      if (updated_.contains(value)) Error("scatter", "reads @", value, " after its update");
    }
    if (op_.axes.size() != op_.type.shape.size()) {
      return Error("axes", op_.axes.size(), " axes for ", op_.type.shape.size(), " dims");
    }
    for (size_t i = 0; i < op_.axes.size(); ++i) {
      if (!SameExtent(op_.axes[i].extent, op_.type.shape[i])) {
        Error("axes", "axis ", op_.axes[i].name, " in ", Print(op_.axes[i].extent), ", dim ", i,
              " is ", Print(op_.type.shape[i]));
      }
    }
    const size_t errors = module_.report->errors.size();
    DeclareAxes(FreeAxes(op_));
    DeclareAxes(ReducedAxes(op_));
    if (module_.report->errors.size() == errors) std::visit(*this, op_.op);
  }

  void operator()(const TensorMap& n) { Check(n.value, op_.type.dtype); }
  void operator()(const TensorReduce& n) {
    if (static_cast<int>(n.operands.size()) != OperandCount(n.monoid)) {
      return Error("reduce", Name(n.monoid), " takes ", OperandCount(n.monoid), " operands, got ",
                   n.operands.size());
    }
    Reduction(n.reduce_axes, n.operands);
  }
  void operator()(const TensorContract& n) { Reduction(n.contract_axes, {n.a, n.b}); }
  void operator()(const TensorView& n) { Source(n.source, false); }
  void operator()(const TensorGather& n) { Source(n.source, true); }
  void operator()(const TensorScatter& n) {
    const ValueType* state = module_.Find(n.state);
    if (!states_.contains(n.state) && !module_.IsState(n.state))
      Error("scatter", "@", n.state, " is not a state");
    if (!SameType(*state, op_.type)) Error("scatter", "the output has not the state's type");
    if (n.indices.size() != state->shape.size()) {
      return Error("scatter", n.indices.size(), " indices, @", n.state, " has ",
                   state->shape.size(), " dims");
    }
    for (const Expr& index : n.indices) Check(index, DType::kI32);
    InBounds(n.state, n.indices, state->shape);
    Check(n.value, op_.type.dtype);
    if (n.guard) Check(n.guard, DType::kBool);
    updated_.insert(n.state);
    states_.insert(op_.out);
  }

 private:
  void Error(RuleIn<kTensorRules> rule, const auto&... parts) {
    module_.Report(*rule, Cat(parts...));
  }

  void DeclareAxes(const std::vector<TensorAxis>& axes) {
    const std::set<std::string> outer = axes_;
    for (const TensorAxis& axis : axes) {
      if (!IsName(axis.name) || !axes_.insert(axis.name).second) {
        Error("axis", "axis `", axis.name, "` is not a name of its own");
      }
      const bool plain = axis.extent && axis.extent->dtype == DType::kI32 &&
                         axis.extent->depth <= kMaxExprDepth &&
                         AllNodes(axis.extent, [&](const Expr& e) {
                           const Symbol* symbol = As<Symbol>(e);
                           const Var* var = As<Var>(e);
                           return symbol        ? module_.HasSymbol(symbol->name)
                                  : var         ? outer.contains(var->name)
                                  : As<Load>(e) ? !outer.empty()
                                                : IsA<IntLiteral, Binary, Unary>(e);
                         });
      if (!plain) {
        Error("axis", "extent ", Print(axis.extent), " of ", axis.name,
              " is not over symbols (and output axes, for a reduced one)");
        continue;
      }
      Visit(axis.extent);
      prover_.SetAxis(axis.name, axis.extent);
    }
  }

  void Reduction(const std::vector<TensorAxis>& axes, const std::vector<Expr>& operands) {
    if (axes.empty()) Error("reduce", "no axis to reduce");
    if (op_.type.dtype != DType::kF32) Error("dtype", "sums are f32");
    for (const Expr& operand : operands) Check(operand, DType::kF32);
  }

  void Source(const Expr& source, bool gather) {
    const Load* load = As<Load>(source);
    if (!load) return Error("view", "the source is not a load");
    const bool loads_inside =
        absl::c_any_of(load->indices, [](const Expr& index) { return !Loads(index).empty(); });
    if (loads_inside != gather)
      Error("view", gather ? "no index is a load" : "an index holds a load");
    Check(source, op_.type.dtype);
  }

  void Check(const Expr& e, DType dtype) {
    if (e->depth > kMaxExprDepth) return Error("scope", "nests ", e->depth, " levels");
    if (e->dtype != dtype) {
      Error("dtype", "expected ", Name(dtype), ", got ", Name(e->dtype), ": ", Print(e));
    }
    Visit(e);
  }

  // Visits with what conditions say on the way.
  void Visit(const Expr& e) {
    if (const Select* select = As<Select>(e)) {
      Visit(select->condition);
      const size_t mark = prover_.Enter();
      for (bool taken : {true, false}) {
        prover_.Assume(select->condition, taken);
        Visit(taken ? select->a : select->b);
        prover_.Leave(mark);
      }
    } else if (const Var* var = As<Var>(e)) {
      if (!axes_.contains(var->name)) Error("scope", "%", var->name, " is not an axis here");
    } else if (const Symbol* symbol = As<Symbol>(e)) {
      if (!module_.HasSymbol(symbol->name))
        Error("scope", "symbol ", symbol->name, " is not declared");
    } else if (As<Builtin>(e) || As<Shuffle>(e)) {
      Error("scope", Print(e), " is of Kernel level");
    } else if (const Load* load = As<Load>(e)) {
      for (const Expr& index : load->indices) Visit(index);
      if (load->guard) Visit(load->guard);
      const ValueType* type = module_.Find(load->buffer);
      if (!type) return;  // reported by the module's rules
      if (type->dtype != load->dtype || type->shape.size() != load->indices.size()) {
        return Error("load", Print(e), " of @", load->buffer, ": ", PrintType(*type));
      }
      InBounds(load->buffer, load->indices, type->shape);
    } else {
      const std::vector<Expr> parts = Children(e);
      if (!parts.empty() && !As<Cast>(e) && IsFloat(parts[0]->dtype) &&
          SizeOf(parts[0]->dtype) == 2)
        Error("dtype", "computes in ", Name(parts[0]->dtype), ": ", Print(e));
      for (const Expr& part : parts) Visit(part);
    }
  }

  void InBounds(const std::string& value, const std::vector<Expr>& indices,
                const std::vector<Expr>& shape) {
    for (size_t i = 0; i < indices.size(); ++i) {
      if (!IsInteger(indices[i]->dtype)) {
        Error("load", "index ", Print(indices[i]), " is not an integer");
        continue;
      }
      if (!prover_.NonNegative(indices[i]) ||
          !prover_.Less(MakeCast(DType::kI32, indices[i]), shape[i])) {
        Error("bounds", "index ", Print(indices[i]), " may leave dim ", i, " of @", value, ", ",
              Print(shape[i]));
      }
    }
  }

  const TensorOp& op_;
  ModuleVerifier& module_;
  std::set<std::string>& updated_;  // states' names that an update made stale
  std::set<std::string>& states_;   // updated states
  std::set<std::string> axes_;
  AccessProver prover_;
};

}  // namespace

std::vector<std::string> VerifyTensor(const TensorModule& module) {
  std::set<std::string> updated, states;
  return VerifyModule(module, ValuesRead, [&](const TensorOp& op, ModuleVerifier& verifier) {
    OpVerifier(op, module.symbols, verifier, updated, states).Verify();
  });
}

}  // namespace hackc::ir
