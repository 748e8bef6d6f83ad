// SPDX-License-Identifier: MIT
#include "compiler/ir/graph_verify.h"

#include <cmath>
#include <set>

#include "compiler/ir/module_text.h"
#include "compiler/ir/module_verify.h"

namespace hackc::ir {
namespace {

using Shape = std::vector<Expr>;
using GraphRule = RuleIn<kGraphRules>;

class OpVerifier {
 public:
  OpVerifier(const GraphOp& op, ModuleVerifier& module, std::set<std::string>& appended)
      : out_(op.type), module_(module), appended_(appended) {
    if (!IsFloat(out_.dtype)) Error("float", "the result is not a float");
    for (const std::string& name : Operands(op)) {
      const auto* append = std::get_if<GraphCacheAppend>(&op.op);
      if (module_.IsState(name) &&
          (append == nullptr || append->cache != name || append->x == name)) {
        Error("cache", "state %", name, " is read by something else than cache_append");
      }
    }
  }

  void Verify(const GraphOp& op) {
    std::visit(
        [&](const auto& node) {
          if (Complete(node)) (*this)(node);
        },
        op.op);
  }

  void operator()(const GraphEmbedding& op) {
    const ValueType& ids = Type(op.ids);
    if (ids.dtype != DType::kI32 && ids.dtype != DType::kI64)
      Error("float", "ids are not i32 or i64");
    Float(op.table);
    const Shape& table = Type(op.table).shape;
    if (!Rank("embedding", op.table, 2)) return;
    Shape shape = ids.shape;
    shape.push_back(table[1]);
    Result("embedding", shape);
  }

  void operator()(const GraphLinear& op) {
    Float(op.x);
    Float(op.weight);
    if (!Rank("linear", op.weight, 2) || !AtLeastOneDim("linear", op.x)) return;
    const Shape& weight = Type(op.weight).shape;
    const Expr& in = weight[op.transposed ? 0 : 1];
    const Expr& out = weight[op.transposed ? 1 : 0];
    Shape shape = Type(op.x).shape;
    Extent("linear", op.x, shape.back(), in);
    if (!op.bias.empty()) Vector("linear", op.bias, out);
    shape.back() = out;
    Result("linear", shape);
  }

  void operator()(const GraphRmsNorm& op) {
    Norm(op.x, op.weight, "", op.epsilon);
    if (!std::isfinite(op.weight_offset)) Error("attribute", "weight_offset is not finite");
  }
  void operator()(const GraphLayerNorm& op) { Norm(op.x, op.weight, op.bias, op.epsilon); }

  void operator()(const GraphRotaryTable& op) {
    if (!std::isfinite(op.scale)) Error("attribute", "scale is not finite");
    if (!(op.dynamic_factor >= 0) || !std::isfinite(op.dynamic_factor) ||
        (op.dynamic_factor > 0) != (op.dynamic_length > 0)) {
      Error("attribute", "dynamic_factor and dynamic_length are not both 0 or both positive");
    }
    const ValueType& frequencies = Type(op.inverse_frequencies);
    if (frequencies.dtype != DType::kF32 || out_.dtype != DType::kF32) {
      Error("rotary_table", "frequencies and table are f32");
    }
    if (!Rank("rotary_table", op.inverse_frequencies, 1)) return;
    if (!module_.HasSymbol("batch") || !module_.HasSymbol("seq")) {
      return Error("rotary_table", "the module has no symbols batch and seq");
    }
    PastLengths("rotary_table", op.past_lengths, MakeSymbol("batch"));
    if (op.dynamic_factor > 0 && AsInt(frequencies.shape[0]).value_or(0) < 2) {
      Error("rotary_table", "a dynamic table has two frequencies at least");
    }
    Result("rotary_table", {MakeSymbol("batch"), MakeSymbol("seq"), frequencies.shape[0]});
  }

  void operator()(const GraphRope& op) {
    Float(op.x);
    if (!Rank("rope", op.x, 4) || !Rank("rope", op.cosine, 3)) return;
    const ValueType& x = Type(op.x);
    const ValueType& cosine = Type(op.cosine);
    if (cosine.dtype != DType::kF32 || !SameType(cosine, Type(op.sine))) {
      Error("rope", "cosine and sine are not f32 of one shape");
    }
    Extent("rope", op.cosine, cosine.shape[0], x.shape[0]);
    Extent("rope", op.cosine, cosine.shape[1], x.shape[1]);
    if (!ProveLessEqual(cosine.shape[2] * 2, x.shape[3], module_.ranges)) {
      Error("rope", "turns ", Print(cosine.shape[2] * 2), " of ", Print(x.shape[3]), " dims");
    }
    Result("rope", x.shape);
  }

  void operator()(const GraphSplitHeads& op) {
    if (!Rank("heads", op.x, 3)) return;
    const Shape& x = Type(op.x).shape;
    SameDType(op.x);
    if (op.first < 0 || op.heads < 1 || op.head_dim < 1) {
      return Error("attribute", "expected first >= 0, heads >= 1 and head_dim >= 1");
    }
    const Expr end = IntLit(op.first) + IntLit(op.heads) * op.head_dim;
    if (!ProveLessEqual(end, x[2], module_.ranges)) {
      Error("heads", "ends at feature ", Print(end), " of ", Print(x[2]));
    }
    Result("heads", {x[0], x[1], IntLit(op.heads), IntLit(op.head_dim)});
  }

  void operator()(const GraphMergeHeads& op) {
    if (!Rank("heads", op.x, 4)) return;
    const Shape& x = Type(op.x).shape;
    SameDType(op.x);
    Result("heads", {x[0], x[1], x[2] * x[3]});
  }

  void operator()(const GraphAttention& op) {
    for (const std::string& name : {op.q, op.k, op.v}) {
      Float(name);
      if (!Rank("attention", name, 4)) return;
    }
    if (!std::isfinite(op.scale) || op.window < 0 || !(op.softcap >= 0) ||
        !std::isfinite(op.softcap)) {
      Error("attribute", "expected a finite scale, window >= 0 and a finite softcap >= 0");
    }
    const Shape& q = Type(op.q).shape;
    const Shape& k = Type(op.k).shape;
    if (!SameShape(k, Type(op.v).shape)) Error("attention", "k and v differ in shape");
    PastLengths("attention", op.past_lengths, q[0]);
    Extent("attention", op.k, k[0], q[0]);
    Extent("attention", op.k, k[1], Keys(q[1]));
    Extent("attention", op.k, k[3], q[3]);
    const auto heads = AsInt(q[2]), shared = AsInt(k[2]);
    if (!heads || !shared || *shared < 1 || *heads % *shared != 0) {
      Error("attention", Print(q[2]), " query heads are not a multiple of ", Print(k[2]));
    }
    Result("attention", q);
  }

  void operator()(const GraphCacheAppend& op) {
    if (!module_.IsState(op.cache)) return Error("cache", "%", op.cache, " is not a state");
    if (!appended_.insert(op.cache).second) Error("cache", "%", op.cache, " is appended to twice");
    if (!module_.HasSymbol("past")) return Error("cache", "the module has no symbol past");
    if (!Rank("cache", op.cache, 4) || !Rank("cache", op.x, 4)) return;
    SameDType(op.x);
    SameDType(op.cache);
    const Shape& cache = Type(op.cache).shape;
    Shape shape = Type(op.x).shape;
    PastLengths("cache", op.past_lengths, shape[0]);
    for (int i : {2, 3}) Extent("cache", op.x, shape[i], cache[i]);
    Expr capacity = cache[1];
    if (op.page_table.empty()) {
      Extent("cache", op.x, shape[0], cache[0]);
    } else {
      if (!Integers("cache", op.page_table, 2)) return;
      const Shape& table = Type(op.page_table).shape;
      Extent("cache", op.page_table, table[0], shape[0]);
      capacity = table[1] * cache[1];
    }
    shape[1] = Keys(shape[1]);
    if (!ProveLessEqual(shape[1], capacity, module_.ranges)) {
      Error("cache", Print(shape[1]), " positions may exceed the capacity ", Print(capacity));
    }
    Result("cache", shape);
  }

  void operator()(const GraphTakePositions& op) {
    SameDType(op.x);
    if (!Rank("positions", op.x, 3)) return;
    const Shape& x = Type(op.x).shape;
    if (!op.positions.empty() && Integers("positions", op.positions, 1)) {
      Extent("positions", op.positions, Type(op.positions).shape[0], x[0]);
    }
    Result("positions", {x[0], IntLit(1), x[2]});
  }

  void operator()(const GraphActivation& op) { Pointwise({op.x}); }
  void operator()(const GraphScale& op) {
    if (!std::isfinite(op.factor)) Error("attribute", "factor is not finite");
    Pointwise({op.x});
  }
  void operator()(const GraphSoftcap& op) {
    if (!(op.cap > 0) || !std::isfinite(op.cap))
      Error("attribute", "cap is not finite and positive");
    Pointwise({op.x});
  }
  void operator()(const GraphAdd& op) { Pointwise({op.a, op.b}); }
  void operator()(const GraphMultiply& op) { Pointwise({op.a, op.b}); }

  void operator()(const GraphConcat& op) {
    if (op.inputs.empty()) return Error("operand", "concat has no inputs");
    Expr rows = IntLit(0);
    for (const std::string& name : op.inputs) {
      if (!AtLeastOneDim("concat", name)) return;
      SameDType(name);
      Shape tail = Type(name).shape;
      rows = rows + tail[0];
      tail[0] = Type(op.inputs[0]).shape[0];
      if (!SameShape(tail, Type(op.inputs[0]).shape)) {
        return Error("concat", "%", name, " differs beyond the first dim");
      }
    }
    Shape shape = Type(op.inputs[0]).shape;
    shape[0] = rows;
    Result("concat", shape);
  }

 private:
  void Error(GraphRule rule, const auto&... parts) { module_.Report(*rule, Cat(parts...)); }
  const ValueType& Type(const std::string& name) const { return *module_.Find(name); }

  // Positions that a query of the last `seq` ones sees.
  Expr Keys(const Expr& seq) const {
    return module_.HasSymbol("past") ? MakeSymbol("past") + seq : seq;
  }

  // Every operand is there but those that may be absent.
  bool Complete(const auto& node) {
    bool complete = true;
    ForEachOperand(node, [&](std::string_view field, const std::string& name) {
      if (!name.empty() || field == "bias" || field == "page_table" || field == "positions") return;
      if (field == "past_lengths" && !module_.HasSymbol("past")) return;
      Error("operand", "operand ", field, " is absent");
      complete = false;
    });
    return complete;
  }
  void Float(const std::string& name) {
    if (!IsFloat(Type(name).dtype)) Error("float", "%", name, " is not a float");
  }
  bool Integers(GraphRule rule, const std::string& name, size_t rank) {
    if (Type(name).dtype != DType::kI32) Error(rule, "%", name, " is not i32");
    return Rank(rule, name, rank);
  }
  // Absent exactly where there is no symbol past.
  void PastLengths(GraphRule rule, const std::string& name, const Expr& batch) {
    if (name.empty()) return;
    if (!module_.HasSymbol("past")) return Error(rule, "past_lengths without a symbol past");
    if (Integers(rule, name, 1)) Extent(rule, name, Type(name).shape[0], batch);
  }
  void SameDType(const std::string& name) {
    if (Type(name).dtype != out_.dtype) Error("view", "%", name, " has another dtype");
  }
  bool Rank(GraphRule rule, const std::string& name, size_t rank) {
    if (Type(name).shape.size() == rank) return true;
    Error(rule, "%", name, " has ", Type(name).shape.size(), " dims; expected ", rank);
    return false;
  }
  bool AtLeastOneDim(GraphRule rule, const std::string& name) {
    if (!Type(name).shape.empty()) return true;
    Error(rule, "%", name, " has no dims");
    return false;
  }
  void Extent(GraphRule rule, const std::string& name, const Expr& got, const Expr& expected) {
    if (SameExtent(got, expected)) return;
    Error(rule, "%", name, " has extent ", Print(got), "; expected ", Print(expected));
  }
  void Vector(GraphRule rule, const std::string& name, const Expr& length) {
    Float(name);
    if (Rank(rule, name, 1)) Extent(rule, name, Type(name).shape[0], length);
  }
  void Result(GraphRule rule, const Shape& shape) {
    if (SameShape(out_.shape, shape)) return;
    Error(rule, "the result is ", PrintType(out_), "; expected ", PrintType({out_.dtype, shape}));
  }
  void Norm(const std::string& x, const std::string& weight, const std::string& bias,
            double epsilon) {
    if (!AtLeastOneDim("norm", x)) return;
    if (!(epsilon >= 0) || !std::isfinite(epsilon))
      Error("attribute", "epsilon is not finite and >= 0");
    Float(x);
    Vector("norm", weight, Type(x).shape.back());
    if (!bias.empty()) Vector("norm", bias, Type(x).shape.back());
    Result("norm", Type(x).shape);
  }
  void Pointwise(const std::vector<std::string>& operands) {
    for (const std::string& name : operands) {
      Float(name);
      if (!SameShape(Type(name).shape, out_.shape)) {
        Error("pointwise", "%", name, " is ", PrintType(Type(name)), ", the result ",
              PrintType(out_));
      }
    }
  }

  const ValueType& out_;
  ModuleVerifier& module_;
  std::set<std::string>& appended_;
};

}  // namespace

std::vector<std::string> VerifyGraph(const GraphModule& module) {
  std::set<std::string> appended;
  return VerifyModule(module, Operands, [&](const GraphOp& op, ModuleVerifier& verifier) {
    OpVerifier(op, verifier, appended).Verify(op);
  });
}

}  // namespace hackc::ir
