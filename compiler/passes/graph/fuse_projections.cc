// SPDX-License-Identifier: MIT
#include "compiler/passes/graph/fuse_projections.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/ir/graph_fields.h"

namespace hackc::passes {
namespace {

using namespace ir;  // NOLINT

struct Group {
  std::vector<size_t> members;  // positions of the linears
  std::string weight, bias, out;
  ValueType weight_type, bias_type, type;
};

// "q_proj", "k_proj", "v_proj" -> "qkv": stems of the weights' modules in the checkpoint.
std::string Stem(const std::string& weight_name) {
  size_t end = weight_name.rfind('.');
  if (end == std::string::npos || end == 0) return weight_name;
  size_t begin = weight_name.rfind('.', end - 1);
  begin = begin == std::string::npos ? 0 : begin + 1;
  std::string stem = weight_name.substr(begin, end - begin);
  if (stem.size() > 5 && stem.ends_with("_proj")) stem.resize(stem.size() - 5);
  return stem;
}

class Fusion {
 public:
  explicit Fusion(const GraphModule& graph) : graph_(graph) {
    for (const SourceDecl& source : graph.sources) Add(source);
    for (const GraphSegment& segment : graph.segments) {
      for (const SourceDecl& source : segment.sources) Add(source);
      for (const Carry& carry : segment.carries) names_.insert(carry.name);
      for (const GraphOp& op : segment.ops) names_.insert(op.out);
      names_.insert(segment.results.begin(), segment.results.end());
    }
  }

  GraphModule Run() {
    GraphModule result = graph_;
    for (GraphSegment& segment : result.segments) FuseSegment(segment);
    return result;
  }

 private:
  void Add(const SourceDecl& source) {
    names_.insert(source.name);
    if (source.kind == SourceDecl::Kind::kWeight) weights_[source.name] = &source;
  }
  std::string Unique(const std::string& base) {
    std::string name = base;
    for (int i = 2; !names_.insert(name).second; ++i) name = base + std::to_string(i);
    return name;
  }

  // Linears that may be joined have equal keys; empty: this one may not.
  std::string KeyOf(const GraphSegment& segment, const GraphOp& op) const {
    const auto* linear = std::get_if<GraphLinear>(&op.op);
    if (!linear || linear->transposed || !weights_.contains(linear->weight)) return "";
    if (!linear->bias.empty() && !weights_.contains(linear->bias)) return "";
    if (std::find(segment.yields.begin(), segment.yields.end(), op.out) != segment.yields.end())
      return "";
    bool read = false;
    for (const GraphOp& reader : segment.ops) {
      std::vector<std::string> values = Operands(reader);
      if (std::find(values.begin(), values.end(), op.out) == values.end()) continue;
      if (!std::holds_alternative<GraphSplitHeads>(reader.op)) return "";
      read = true;
    }
    if (!read) return "";
    const ValueType& weight = weights_.at(linear->weight)->type;
    std::string key = linear->x + "|" + std::string(Name(op.type.dtype)) + "|" +
                      std::string(Name(weight.dtype)) + "|" + Print(weight.shape[1]);
    if (!linear->bias.empty())
      key += "|" + std::string(Name(weights_.at(linear->bias)->type.dtype));
    return key;
  }

  Group Join(const GraphSegment& segment, const std::vector<size_t>& members) {
    Group group;
    group.members = members;
    std::string stem;
    Expr features = IntLit(0);
    for (size_t i : members) {
      const auto& linear = std::get<GraphLinear>(segment.ops[i].op);
      const SourceDecl& weight = *weights_.at(linear.weight);
      stem += Stem(weight.weight_name);
      features = features + weight.type.shape[0];
      group.weight_type = weight.type;
      if (!linear.bias.empty()) group.bias_type = weights_.at(linear.bias)->type;
    }
    group.type = segment.ops[members[0]].type;
    group.type.shape.back() = features;
    group.weight_type.shape[0] = features;
    group.out = Unique(stem);
    group.weight = Unique(stem + "_weight");
    if (!group.bias_type.shape.empty()) {
      group.bias_type.shape[0] = features;
      group.bias = Unique(stem + "_bias");
    }
    return group;
  }

  // The joined operations, in place of the group's first linear.
  void Emit(const GraphSegment& segment, const Group& group, std::vector<GraphOp>& ops) const {
    GraphConcat weights, biases;
    for (size_t i : group.members) {
      const auto& linear = std::get<GraphLinear>(segment.ops[i].op);
      weights.inputs.push_back(linear.weight);
      biases.inputs.push_back(linear.bias);
    }
    std::string x = std::get<GraphLinear>(segment.ops[group.members[0]].op).x;
    ops.push_back({group.weight, group.weight_type, std::move(weights)});
    if (!group.bias.empty()) ops.push_back({group.bias, group.bias_type, std::move(biases)});
    ops.push_back({group.out, group.type, GraphLinear{x, group.weight, group.bias}});
  }

  void FuseSegment(GraphSegment& segment) {
    std::map<std::string, std::vector<size_t>> by_key;
    for (size_t i = 0; i < segment.ops.size(); ++i) {
      std::string key = KeyOf(segment, segment.ops[i]);
      if (!key.empty()) by_key[key].push_back(i);
    }
    std::map<size_t, Group> at;  // by position of the first linear
    std::map<std::string, std::pair<std::string, int64_t>>
        moved;  // old value -> joined value, first feature
    std::set<size_t> gone;
    for (const auto& [key, members] : by_key) {
      if (members.size() < 2) continue;
      Group group = Join(segment, members);
      int64_t first = 0;
      for (size_t i : members) {
        moved[segment.ops[i].out] = {group.out, first};
        first += AsInt(segment.ops[i].type.shape.back()).value_or(0);
        gone.insert(i);
      }
      at.emplace(members[0], std::move(group));
    }
    std::vector<GraphOp> ops;
    for (size_t i = 0; i < segment.ops.size(); ++i) {
      if (auto group = at.find(i); group != at.end()) Emit(segment, group->second, ops);
      if (gone.contains(i)) continue;
      ops.push_back(segment.ops[i]);
      auto* split = std::get_if<GraphSplitHeads>(&ops.back().op);
      auto target = split ? moved.find(split->x) : moved.end();
      if (target == moved.end()) continue;
      split->x = target->second.first;
      split->first += target->second.second;
    }
    segment.ops = std::move(ops);
  }

  const GraphModule& graph_;
  std::set<std::string> names_;
  std::map<std::string, const SourceDecl*> weights_;
};

}  // namespace

GraphModule FuseProjections(const GraphModule& graph) { return Fusion(graph).Run(); }

}  // namespace hackc::passes
