// SPDX-License-Identifier: MIT
#include "compiler/passes/tensor/lower_graph.h"

#include <limits>
#include <map>
#include <numbers>

#include "absl/strings/str_split.h"
#include "compiler/ir/ranges.h"
#include "compiler/support/internal_error.h"

namespace hackc::passes {
namespace {

using namespace ir;  // NOLINT: nearly every name here is Graph or Tensor IR

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Expr Divide(const Expr& a, const Expr& b) { return MakeBinary(BinaryOp::kDiv, a, b); }
Expr F32(const Expr& a) { return MakeCast(DType::kF32, a); }
Expr Number(double value) { return FloatLit(value); }

std::vector<TensorAxis> AxesOf(const std::vector<Expr>& shape) {
  static const std::vector<std::vector<std::string>> kNames = {
      {}, {"c"}, {"s", "c"}, {"b", "s", "c"}, {"b", "s", "h", "d"}};
  HACKC_CHECK(shape.size() < kNames.size()) << "rank " << shape.size();
  std::vector<TensorAxis> axes;
  for (size_t i = 0; i < shape.size(); ++i) axes.push_back({kNames[shape.size()][i], shape[i]});
  return axes;
}

std::vector<Expr> IndicesOf(const std::vector<TensorAxis>& axes) {
  std::vector<Expr> indices;
  for (const TensorAxis& axis : axes) indices.push_back(Axis(axis.name));
  return indices;
}

int64_t StaticExtent(const Expr& extent) {
  HACKC_CHECK(AsInt(extent).has_value()) << Print(extent) << " must be static";
  return *AsInt(extent);
}

// "model.layers.{layer}.self_attn.q_proj.weight" -> "q_proj".
std::string CheckpointModule(const std::string& weight_name) {
  std::vector<std::string> parts = absl::StrSplit(weight_name, '.');
  return parts.size() < 2 ? weight_name : parts[parts.size() - 2];
}

bool RemoveSuffix(std::string& text, std::string_view suffix) {
  if (text.size() <= suffix.size() || !text.ends_with(suffix)) return false;
  text.resize(text.size() - suffix.size());
  return true;
}

class Lowering {
 public:
  explicit Lowering(const GraphModule& graph) : graph_(graph) {}

  TensorModule Run() {
    TensorModule module{graph_.name, graph_.symbols, graph_.sources, {}, graph_.outputs};
    AddSources(graph_.sources);
    for (const GraphSegment& segment : graph_.segments)
      module.segments.push_back(LowerSegment(segment));
    return module;
  }

 private:
  void AddSources(const std::vector<SourceDecl>& sources) {
    for (const SourceDecl& source : sources) {
      types_[source.name] = source.type;
      if (source.kind == SourceDecl::Kind::kWeight) weight_names_[source.name] = source.weight_name;
    }
  }

  TensorSegment LowerSegment(const GraphSegment& segment) {
    TensorSegment result{segment};
    AddSources(segment.sources);
    for (const Carry& carry : segment.carries) types_[carry.name] = TypeOf(carry.initial);
    ops_ = &result.ops;
    for (const GraphOp& op : segment.ops) {
      op_ = &op;
      axes_ = AxesOf(op.type.shape);
      at_ = IndicesOf(axes_);
      std::visit([&](const auto& n) { Lower(n); }, op.op);
    }
    for (size_t i = 0; i < segment.results.size(); ++i)
      types_[segment.results[i]] = TypeOf(segment.yields[i]);
    return result;
  }

  const ValueType& TypeOf(const std::string& name) const {
    const ValueType* type = FindOrNull(types_, name);
    HACKC_CHECK(type != nullptr) << "unknown value %" << name;
    return *type;
  }
  Expr Value(const std::string& name, std::vector<Expr> indices) const {
    return MakeLoad(name, TypeOf(name).dtype, std::move(indices));
  }
  Expr Wide(const std::string& name, std::vector<Expr> indices) const {
    return F32(Value(name, std::move(indices)));
  }

  void Emit(std::string out, ValueType type, std::vector<TensorAxis> axes, TensorOpVariant op,
            std::string label) {
    types_[out] = type;
    ops_->push_back(
        {std::move(out), std::move(type), std::move(axes), std::move(op), std::move(label)});
  }
  // A float32 part of an operation's value; the name of what it defines.
  std::string EmitPart(std::string_view part, const std::vector<TensorAxis>& axes,
                       TensorOpVariant tensor_op, const std::string& label) {
    std::string name = op_->out + "." + std::string(part);
    ValueType type{DType::kF32, {}};
    for (const TensorAxis& axis : axes) type.shape.push_back(axis.extent);
    Emit(name, type, axes, std::move(tensor_op), label);
    return name;
  }
  // The operation's own value: a map rounded to its dtype.
  void EmitResult(const Expr& value, const std::string& label) {
    Emit(op_->out, op_->type, axes_, TensorMap{MakeCast(op_->type.dtype, value)}, label);
  }
  void EmitResult(const Expr& value) { EmitResult(value, op_->out); }
  void EmitOwn(TensorOpVariant op) { Emit(op_->out, op_->type, axes_, std::move(op), op_->out); }

  // Tokens of sequence `b` that the cache holds already.
  Expr Start(const std::string& past_lengths, const Expr& b) const {
    if (past_lengths.empty()) return IntLit(0);
    return Min(Max(Value(past_lengths, {b}), IntLit(0)), MakeSymbol("past"));
  }

  // What a linear or norm is for, from the checkpoint's name of its weight.
  std::string LabelOfWeight(const std::string& weight, const std::string& out) const {
    const std::string* name = FindOrNull(weight_names_, weight);
    std::string stem = name ? CheckpointModule(*name) : weight;
    if (RemoveSuffix(stem, "_proj") || RemoveSuffix(stem, "_weight")) return stem + "_linear";
    if (RemoveSuffix(stem, "_layernorm")) return stem + "_norm";
    if (stem == "norm") return "final_norm";
    return stem.ends_with("_norm") || stem == "lm_head" ? stem : out;
  }

  void Lower(const GraphEmbedding& n) {
    const ValueType& table = TypeOf(n.table);
    Expr id = Value(n.ids, {at_[0], at_[1]});
    Expr last = MakeCast(id->dtype, table.shape[0] - 1);
    Expr row = MakeCast(DType::kI32, Max(Min(id, last), IntLit(0, id->dtype)));
    std::string rows = op_->out;
    if (table.dtype != op_->type.dtype) rows += ".rows";
    Emit(rows, {table.dtype, op_->type.shape}, axes_, TensorGather{Value(n.table, {row, at_[2]})},
         "embedding");
    if (rows != op_->out) EmitResult(Value(rows, at_), "embedding");
  }

  void Lower(const GraphLinear& n) {
    std::vector<Expr> x_at = at_;
    Expr k = Axis("k"), feature = at_.back();
    x_at.back() = k;
    Expr weight = n.transposed ? Wide(n.weight, {k, feature}) : Wide(n.weight, {feature, k});
    TensorContract contract{{{"k", TypeOf(n.x).shape.back()}}, Wide(n.x, x_at), weight};
    std::string label = LabelOfWeight(n.weight, op_->out);
    if (op_->type.dtype == DType::kF32 && n.bias.empty())
      return Emit(op_->out, op_->type, axes_, std::move(contract), label);
    Expr sum = Value(EmitPart("sum", axes_, std::move(contract), label), at_);
    EmitResult(n.bias.empty() ? sum : sum + Wide(n.bias, {feature}), label);
  }

  std::vector<TensorAxis> Rows() const { return {axes_.begin(), axes_.end() - 1}; }
  // Sum over the last axis of what `term` makes of an element's indices.
  Expr RowSum(std::string_view part, auto term, const std::string& label) {
    std::vector<Expr> element = at_;
    element.back() = Axis("k");
    TensorReduce reduce{Monoid::kSum, {{"k", axes_.back().extent}}, {term(element)}};
    return Value(EmitPart(part, Rows(), std::move(reduce), label), IndicesOf(Rows()));
  }
  Expr RowValue(std::string_view part, const Expr& value, const std::string& label) {
    return Value(EmitPart(part, Rows(), TensorMap{value}, label), IndicesOf(Rows()));
  }

  Expr RowMean(std::string_view part, auto term, const std::string& label) {
    const auto count = static_cast<double>(StaticExtent(axes_.back().extent));
    return Divide(RowSum(part, term, label), Number(count));
  }
  // One over the root of the mean square of what `term` makes of a row's elements.
  Expr RowScale(auto term, double epsilon, const std::string& label) {
    const auto square = [&](const std::vector<Expr>& i) { return term(i) * term(i); };
    const Expr mean = RowMean("squares", square, label);
    return RowValue("scale", MakeUnary(UnaryOp::kRsqrt, mean + Number(epsilon)), label);
  }

  void Lower(const GraphRmsNorm& n) {
    std::string label = LabelOfWeight(n.weight, op_->out);
    auto element = [&](const std::vector<Expr>& i) { return Wide(n.x, i); };
    Expr scale = RowScale(element, n.epsilon, label);
    Expr weight = Wide(n.weight, {at_.back()});
    if (n.weight_offset != 0) weight = weight + Number(n.weight_offset);
    EmitResult(Wide(n.x, at_) * scale * weight, label);
  }

  void Lower(const GraphLayerNorm& n) {
    std::string label = LabelOfWeight(n.weight, op_->out);
    auto element = [&](const std::vector<Expr>& i) { return Wide(n.x, i); };
    Expr mean = RowValue("mean", RowMean("sum", element, label), label);
    auto centred = [&](const std::vector<Expr>& i) { return Wide(n.x, i) - mean; };
    Expr scale = RowScale(centred, n.epsilon, label);
    Expr value = centred(at_) * scale * Wide(n.weight, {at_.back()});
    EmitResult(n.bias.empty() ? value : value + Wide(n.bias, {at_.back()}), label);
  }

  void Lower(const GraphRotaryTable& n) {
    Expr start = Start(n.past_lengths, at_[0]);
    Expr angle = F32(start + at_[1]) * Wide(n.inverse_frequencies, {at_[2]});
    if (n.dynamic_factor > 0) {  // stretch^(-j / (half - 1)); see graph.h
      int64_t half = StaticExtent(op_->type.shape[2]);
      Expr excess = F32(start + op_->type.shape[1]) * Number(1.0 / n.dynamic_length) - Number(1);
      Expr stretch = Max(excess, Number(0)) * Number(n.dynamic_factor) + Number(1);
      Expr power = F32(at_[2]) * Number(-1.0 / (half - 1));
      angle = angle * MakeBinary(BinaryOp::kPow, stretch, power);
    }
    Expr value = MakeUnary(n.sine ? UnaryOp::kSin : UnaryOp::kCos, angle);
    EmitResult(n.scale == 1 ? value : value * Number(n.scale),
               n.sine ? "rotary_sine" : "rotary_cosine");
  }

  void Lower(const GraphRope& n) {
    int64_t half = StaticExtent(TypeOf(n.cosine).shape.back()), rotary = 2 * half;
    int64_t head_dim = StaticExtent(op_->type.shape.back());
    Expr d = at_[3], pair, partner, first;
    if (n.interleaved) {  // the clamp is for dims that pass unrotated
      pair = rotary == head_dim ? FloorDiv(d, 2) : Min(FloorDiv(d, 2), IntLit(half - 1));
      partner = FloorDiv(d, 2) * 2 + 1 - Mod(d, 2);
      first = MakeBinary(BinaryOp::kEq, Mod(d, 2), IntLit(0));
    } else {
      pair = Mod(d, half);
      partner = Mod(d + half, rotary);
      first = Lt(d, IntLit(half));
    }
    Expr cosine = Value(n.cosine, {at_[0], at_[1], pair});
    Expr sine = Value(n.sine, {at_[0], at_[1], pair});
    Expr sign = MakeSelect(first, Number(-1), Number(1));
    Expr rotated =
        Wide(n.x, at_) * cosine + sign * Wide(n.x, {at_[0], at_[1], at_[2], partner}) * sine;
    bool whole = rotary == head_dim;
    EmitResult(whole ? rotated : MakeSelect(Lt(d, IntLit(rotary)), rotated, Wide(n.x, at_)));
  }

  void Lower(const GraphSplitHeads& n) {
    EmitOwn(TensorView{Value(n.x, {at_[0], at_[1], at_[2] * n.head_dim + at_[3] + n.first})});
  }

  void Lower(const GraphMergeHeads& n) {
    int64_t head_dim = StaticExtent(TypeOf(n.x).shape[3]);
    EmitOwn(TensorView{
        Value(n.x, {at_[0], at_[1], FloorDiv(at_[2], head_dim), Mod(at_[2], head_dim)})});
  }

  Expr Softcap(const Expr& x, double cap) const {
    return MakeUnary(UnaryOp::kTanh, Divide(x, Number(cap))) * Number(cap);
  }

  // Keys end at start(b) + s: causality is the extent of the sum, and no score beyond it is ever
  // read. The keys of a single token begin where its window does.
  void Lower(const GraphAttention& n) {
    const std::string label = "attention";
    const ValueType &q = TypeOf(n.q), &k = TypeOf(n.k);
    Expr b = Axis("b"), s = Axis("s"), h = Axis("h"), t = Axis("t"), d = Axis("d"), e = Axis("e");
    int64_t group = StaticExtent(q.shape[2]) / StaticExtent(k.shape[2]);
    Expr start = Start(n.past_lengths, b), key = t, end = start + s + 1;
    const bool masked = n.window > 0 && Bounds(q.shape[1], RangeMap(graph_.symbols)).max > 1;
    if (n.window > 0 && !masked) {
      const Expr first = Max(start - (n.window - 1), IntLit(0));
      key = first + t;
      end = end - first;
    }

    std::vector<TensorAxis> score_axes = {axes_[0], axes_[1], axes_[2], {"t", k.shape[1]}};
    TensorContract products{
        {{"d", q.shape[3]}}, Wide(n.q, {b, s, h, d}), Wide(n.k, {b, t, FloorDiv(h, group), d})};
    Expr score = Value(EmitPart("products", score_axes, std::move(products), label), {b, s, h, t});
    score = score * Number(n.scale);
    if (n.softcap > 0) score = Softcap(score, n.softcap);
    if (masked) {
      score = MakeSelect(Lt(start + s - t, IntLit(n.window)), score, Number(-kInfinity));
    }
    score = Value(EmitPart("scores", score_axes, TensorMap{score}, label), {b, s, h, key});

    std::vector<TensorAxis> sum_axes = {axes_[0], axes_[1], axes_[2], {"e", op_->type.shape[3]}};
    TensorReduce softmax{
        Monoid::kSoftmaxSum, {{"t", end}}, {score, Wide(n.v, {b, key, FloorDiv(h, group), e})}};
    if (op_->type.dtype == DType::kF32)
      return Emit(op_->out, op_->type, sum_axes, std::move(softmax), label);
    Expr sum = Value(EmitPart("sum", sum_axes, std::move(softmax), label), {b, s, h, e});
    Emit(op_->out, op_->type, sum_axes, TensorMap{MakeCast(op_->type.dtype, sum)}, label);
  }

  // Where the cache holds [b, position, h, d], and the condition that it does (absent: always).
  std::pair<std::vector<Expr>, Expr> CachePlace(const GraphCacheAppend& n,
                                                std::vector<Expr> at) const {
    if (n.page_table.empty()) return {std::move(at), nullptr};
    const std::vector<Expr>& cache = TypeOf(n.cache).shape;
    Expr page = Value(n.page_table, {at[0], FloorDiv(at[1], cache[1])});
    Expr clamped = Min(Max(page, IntLit(0)), cache[0] - 1);
    return {{clamped, Mod(at[1], cache[1]), at[2], at[3]},
            And(Le(IntLit(0), page), Lt(page, cache[0]))};
  }

  void Lower(const GraphCacheAppend& n) {
    const ValueType &cache = TypeOf(n.cache), &x = TypeOf(n.x);
    std::vector<TensorAxis> axes = AxesOf(cache.shape), update_axes = AxesOf(x.shape);
    std::vector<Expr> from = IndicesOf(update_axes), to = from;
    to[1] = Start(n.past_lengths, to[0]) + to[1];
    auto [target, guard] = CachePlace(n, to);
    std::string state = op_->out + ".state";
    Emit(
        state, cache, axes,
        TensorScatter{n.cache, update_axes, target, MakeCast(cache.dtype, Value(n.x, from)), guard},
        n.cache + "_append");
    auto [source, held] = CachePlace(n, at_);
    Expr element = MakeLoad(state, cache.dtype, source, held);
    if (n.page_table.empty()) return EmitOwn(TensorView{element});
    EmitOwn(TensorGather{element});
  }

  void Lower(const GraphTakePositions& n) {
    const Expr last = TypeOf(n.x).shape[1] - 1;
    if (n.positions.empty()) return EmitOwn(TensorView{Value(n.x, {at_[0], last, at_[2]})});
    const Expr position = Min(Max(Value(n.positions, {at_[0]}), IntLit(0)), last);
    EmitOwn(TensorGather{Value(n.x, {at_[0], position, at_[2]})});
  }

  Expr Activate(ActivationKind kind, const Expr& x) const {
    Expr one = Number(1), half = Number(0.5);
    switch (kind) {
      case ActivationKind::kSilu:
        return Divide(x, one + MakeUnary(UnaryOp::kExp, MakeUnary(UnaryOp::kNeg, x)));
      case ActivationKind::kSigmoid:
        return Divide(one, one + MakeUnary(UnaryOp::kExp, MakeUnary(UnaryOp::kNeg, x)));
      case ActivationKind::kGelu:
        return half * x * (one + MakeUnary(UnaryOp::kErf, x * Number(1 / std::numbers::sqrt2)));
      case ActivationKind::kGeluTanh: {
        Expr inner = Number(std::numbers::sqrt2 * std::numbers::inv_sqrtpi) *
                     (x + Number(0.044715) * x * x * x);
        return half * x * (one + MakeUnary(UnaryOp::kTanh, inner));
      }
      case ActivationKind::kRelu: return MakeBinary(BinaryOp::kMax, x, Number(0));
      case ActivationKind::kTanh: return MakeUnary(UnaryOp::kTanh, x);
    }
    HACKC_FAIL() << "activation " << static_cast<int>(kind);
  }

  void Lower(const GraphActivation& n) { EmitResult(Activate(n.kind, Wide(n.x, at_))); }
  void Lower(const GraphMultiply& n) { EmitResult(Wide(n.a, at_) * Wide(n.b, at_)); }
  void Lower(const GraphAdd& n) { EmitResult(Wide(n.a, at_) + Wide(n.b, at_), "residual"); }
  void Lower(const GraphScale& n) { EmitResult(Wide(n.x, at_) * Number(n.factor)); }
  void Lower(const GraphSoftcap& n) { EmitResult(Softcap(Wide(n.x, at_), n.cap)); }

  // Nested selects, so that each element reads one input.
  void Lower(const GraphConcat& n) {
    int64_t end = StaticExtent(op_->type.shape[0]);
    std::vector<Expr> index = at_;
    Expr value;
    for (size_t i = n.inputs.size(); i-- > 0;) {
      const int64_t begin = end - StaticExtent(TypeOf(n.inputs[i]).shape[0]);
      index[0] = at_[0] - begin;
      const Expr part = Value(n.inputs[i], index);
      value = value ? MakeSelect(Lt(at_[0], IntLit(end)), part, value) : part;
      end = begin;
    }
    EmitResult(value);
  }

  const GraphModule& graph_;
  std::map<std::string, ValueType> types_;
  std::map<std::string, std::string> weight_names_;
  std::vector<TensorOp>* ops_ = nullptr;
  const GraphOp* op_ = nullptr;   // being lowered
  std::vector<TensorAxis> axes_;  // of its value
  std::vector<Expr> at_;          // an element of it
};

}  // namespace

TensorModule LowerGraph(const GraphModule& graph) { return Lowering(graph).Run(); }

}  // namespace hackc::passes
