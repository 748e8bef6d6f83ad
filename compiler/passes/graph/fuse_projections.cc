// SPDX-License-Identifier: MIT
#include "compiler/passes/graph/fuse_projections.h"

#include <map>

#include "absl/strings/str_split.h"
#include "compiler/support/cat.h"
#include "compiler/support/name_set.h"

namespace hackc::passes {
namespace {

using namespace ir;  // NOLINT

// "q_proj", "k_proj", "v_proj" -> "qkv": stems of the weights' modules in the checkpoint.
std::string Stem(const std::string& weight_name) {
  std::vector<std::string> parts = absl::StrSplit(weight_name, '.');
  std::string stem = parts.size() < 2 ? weight_name : parts[parts.size() - 2];
  if (stem.size() > 5 && stem.ends_with("_proj")) stem.resize(stem.size() - 5);
  return stem;
}

class Fusion {
 public:
  explicit Fusion(const GraphModule& graph) : graph_(graph) {
    for (const SourceDecl& source : graph.sources) Add(source);
    for (const GraphSegment& segment : graph.segments) {
      for (const SourceDecl& source : segment.sources) Add(source);
      for (const Carry& carry : segment.carries) names_.Add(carry.name);
      for (const GraphOp& op : segment.ops) names_.Add(op.out);
      for (const std::string& name : segment.results) names_.Add(name);
    }
  }

  GraphModule Run() {
    GraphModule result = graph_;
    for (GraphSegment& segment : result.segments) FuseSegment(segment);
    return result;
  }

 private:
  void Add(const SourceDecl& source) {
    names_.Add(source.name);
    if (source.kind == SourceDecl::Kind::kWeight) weights_[source.name] = &source;
  }

  // Linears that may be joined have equal keys; empty: this one may not.
  std::string KeyOf(const GraphSegment& segment, const GraphOp& op) const {
    const auto* linear = std::get_if<GraphLinear>(&op.op);
    if (!linear || linear->transposed || !weights_.contains(linear->weight)) return "";
    if (!linear->bias.empty() && !weights_.contains(linear->bias)) return "";
    if (absl::c_linear_search(segment.yields, op.out)) return "";
    bool read = false;
    for (const GraphOp& reader : segment.ops) {
      std::vector<std::string> values = Operands(reader);
      if (!absl::c_linear_search(values, op.out)) continue;
      if (!std::holds_alternative<GraphSplitHeads>(reader.op)) return "";
      read = true;
    }
    if (!read) return "";
    const ValueType& weight = weights_.at(linear->weight)->type;
    std::string key = Cat(linear->x, "|", Name(op.type.dtype), "|", Name(weight.dtype), "|",
                          Print(weight.shape[1]));
    if (!linear->bias.empty()) key += Cat("|", Name(weights_.at(linear->bias)->type.dtype));
    return key;
  }

  // One linear for those at `members`, to stand in the first one's place. `moved` gets where each
  // value is now: the joined value and its first feature there.
  void Join(const GraphSegment& segment, const std::vector<size_t>& members,
            std::vector<GraphOp>& ops,
            std::map<std::string, std::pair<std::string, int64_t>>& moved) {
    const auto linear = [&](size_t i) { return std::get<GraphLinear>(segment.ops[i].op); };
    ValueType type = segment.ops[members[0]].type;
    type.shape.back() = IntLit(0);
    std::string stem;
    for (size_t i : members) {
      const SourceDecl& weight = *weights_.at(linear(i).weight);
      stem += Stem(weight.weight_name);
      type.shape.back() = type.shape.back() + weight.type.shape[0];
    }
    const std::string out = names_.Unique(stem);
    // Weights or biases, one after another.
    const auto concat = [&](std::string GraphLinear::*part, const char* suffix) -> std::string {
      if (linear(members[0]).*part == "") return "";
      GraphConcat all;
      for (size_t i : members) all.inputs.push_back(linear(i).*part);
      ValueType of_all = weights_.at(all.inputs.back())->type;
      of_all.shape[0] = type.shape.back();
      ops.push_back({names_.Unique(stem + suffix), of_all, std::move(all)});
      return ops.back().out;
    };
    GraphLinear joined{linear(members[0]).x, concat(&GraphLinear::weight, "_weight"),
                       concat(&GraphLinear::bias, "_bias")};
    ops.push_back({out, type, std::move(joined)});
    int64_t first = 0;
    for (size_t i : members) {
      moved[segment.ops[i].out] = {out, first};
      first += AsInt(segment.ops[i].type.shape.back()).value_or(0);
    }
  }

  void FuseSegment(GraphSegment& segment) {
    std::map<std::string, std::vector<size_t>> by_key;
    for (size_t i = 0; i < segment.ops.size(); ++i) {
      std::string key = KeyOf(segment, segment.ops[i]);
      if (!key.empty()) by_key[key].push_back(i);
    }
    std::map<size_t, std::vector<size_t>> groups;  // by position of the first linear
    for (auto& [key, members] : by_key) {
      if (members.size() > 1) groups[members[0]] = std::move(members);
    }
    std::map<std::string, std::pair<std::string, int64_t>> moved;
    std::vector<GraphOp> ops;
    for (size_t i = 0; i < segment.ops.size(); ++i) {
      if (const auto* group = FindOrNull(groups, i)) Join(segment, *group, ops, moved);
      if (moved.contains(segment.ops[i].out)) continue;
      ops.push_back(segment.ops[i]);
      auto* split = std::get_if<GraphSplitHeads>(&ops.back().op);
      const auto* target = split ? FindOrNull(moved, split->x) : nullptr;
      if (!target) continue;
      split->x = target->first;
      split->first += target->second;
    }
    segment.ops = std::move(ops);
  }

  const GraphModule& graph_;
  NameSet names_;
  std::map<std::string, const SourceDecl*> weights_;
};

}  // namespace

GraphModule FuseProjections(const GraphModule& graph) { return Fusion(graph).Run(); }

}  // namespace hackc::passes
