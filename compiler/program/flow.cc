// SPDX-License-Identifier: MIT
#include "compiler/program/flow.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/ir/rewrite.h"
#include "compiler/support/internal_error.h"

namespace hackc::program {
namespace {

class FlowMaker {
 public:
  explicit FlowMaker(const ir::LoopModule& module) : module_(module) {}

  Flow Run() {
    flow_.symbols = module_.symbols;
    for (const ir::SourceDecl& source : module_.sources) AddSource(source, nullptr);
    for (const ir::LoopSegment& segment : module_.segments) AddSegment(segment);
    for (const std::string& output : module_.outputs) {
      flow_.outputs.push_back(Find(output));
      flow_.output_names.push_back(output);
    }
    return std::move(flow_);
  }

 private:
  int Find(const std::string& name) const {
    const int* id = FindOrNull(ids_, name);
    HACKC_CHECK(id != nullptr) << "value %" << name << " is not defined before its use";
    return *id;
  }

  void Name(const std::string& name, int id) {
    HACKC_CHECK(ids_.emplace(name, id).second) << "value %" << name << " is defined twice";
  }

  void AddSource(const ir::SourceDecl& source, const ir::LoopSegment* segment) {
    using Kind = Buffer::Kind;
    static constexpr Kind kKinds[] = {Kind::kInput, Kind::kWeight, Kind::kConstant, Kind::kState};
    FlowValue value{source.name, source.type, kKinds[static_cast<size_t>(source.kind)], &source,
                    source.weight_name};
    if (segment != nullptr) ResolveLayer(*segment, value);
    Name(source.name, flow_.AddValue(std::move(value)));
  }

  // "{layer}" and "{layer+k}" of a source inside `segment`.
  void ResolveLayer(const ir::LoopSegment& segment, FlowValue& value) {
    bool per_layer = false;
    for (int k = 0; k < segment.layer_step && !per_layer; ++k) {
      std::string pattern = k == 0 ? "{layer}" : absl::StrCat("{layer+", k, "}");
      if (value.weight_name.find(pattern) == std::string::npos) continue;
      per_layer = true;
      value.first_layer = segment.first_layer + k;
      std::string layer = segment.count > 1 ? "{layer}" : absl::StrCat(value.first_layer);
      value.weight_name = absl::StrReplaceAll(value.weight_name, {{pattern, layer}});
    }
    HACKC_CHECK(per_layer || value.weight_name.find("{layer") == std::string::npos)
        << "%" << value.name << ": weight name " << value.weight_name;
    if (segment.count == 1) return;
    value.section = static_cast<int>(flow_.sections.size());
    value.per_iteration = per_layer || value.kind == Buffer::Kind::kState;
  }

  void AddSegment(const ir::LoopSegment& segment) {
    HACKC_CHECK(segment.count >= 1) << "segment " << segment.name;
    HACKC_CHECK(segment.results.size() == segment.yields.size()) << "segment " << segment.name;
    const bool repeated = segment.count > 1;
    HACKC_CHECK(!repeated || segment.carries.size() == segment.yields.size())
        << "segment " << segment.name;
    FlowSection section{segment.count, segment.first_layer, segment.layer_step, {}, {}};
    for (const ir::SourceDecl& source : segment.sources) AddSource(source, &segment);
    for (const ir::Carry& carry : segment.carries) {
      int initial = Find(carry.initial);
      if (repeated) {
        int inside = AddTemporary(carry.name, flow_.values[initial].type, repeated);
        section.carries.push_back({initial, inside, -1, -1});
      } else {
        Name(carry.name, initial);
      }
    }
    for (const ir::LoopLaunch& launch : segment.ops)
      section.launches.push_back(AddLaunch(launch, repeated));
    for (size_t i = 0; i < segment.yields.size(); ++i) {
      int yield = Find(segment.yields[i]);
      if (repeated) {
        int result = AddTemporary(segment.results[i], flow_.values[yield].type, false);
        section.carries[i].yield = yield;
        section.carries[i].result = result;
      } else if (ids_.count(segment.results[i]) == 0 || ids_[segment.results[i]] != yield) {
        Name(segment.results[i], yield);
      }
    }
    flow_.sections.push_back(std::move(section));
  }

  int AddTemporary(const std::string& name, const ir::ValueType& type, bool inside) {
    FlowValue value{.name = name, .type = type};
    if (inside) value.section = static_cast<int>(flow_.sections.size());
    int id = flow_.AddValue(std::move(value));
    Name(name, id);
    return id;
  }

  FlowLaunch AddLaunch(const ir::LoopLaunch& launch, bool repeated) {
    HACKC_CHECK(launch.args.size() == launch.fn.fn.buffers.size())
        << "launch of " << launch.fn.fn.name;
    for (const auto& [name, type] : launch.results) AddTemporary(name, type, repeated);
    FlowLaunch result{launch.fn, {}};
    ir::DropUnusedSymbols(result.fn.fn);
    std::map<int, bool> written;
    for (size_t i = 0; i < launch.args.size(); ++i) {
      int id = Find(launch.args[i]);
      const ir::BufferDecl& buffer = launch.fn.fn.buffers[i];
      // Parameters are declared __restrict__: what one writes, no other may name.
      auto [it, first] = written.emplace(id, Writes(buffer));
      HACKC_CHECK(first || (!it->second && !Writes(buffer)))
          << "launch of " << launch.fn.fn.name << " writes %" << launch.args[i]
          << " and names it twice";
      using Result = std::pair<std::string, ir::ValueType>;
      const bool made = FindBy(launch.results, &Result::first, launch.args[i]) != nullptr;
      HACKC_CHECK(made == (Writes(buffer) && flow_.values[id].kind != Buffer::Kind::kState))
          << "launch of " << launch.fn.fn.name << ": %" << launch.args[i] << " is bound to @"
          << buffer.name;
      result.args.push_back(id);
    }
    return result;
  }

  const ir::LoopModule& module_;
  Flow flow_;
  std::map<std::string, int> ids_;
};

}  // namespace

Flow MakeFlow(const ir::LoopModule& module) { return FlowMaker(module).Run(); }

FlowLaunch MakeCopy(const Flow& flow, int from, int to) {
  const ir::ValueType& type = flow.values[from].type;
  std::vector<ir::For> loops;
  std::vector<ir::Expr> indices;
  for (size_t i = 0; i < type.shape.size(); ++i) {
    loops.push_back({.axis = absl::StrCat("i", i), .extent = type.shape[i]});
    indices.push_back(ir::Axis(loops.back().axis));
  }
  const ir::Store copy{"y", indices, ir::MakeLoad("x", type.dtype, indices)};
  ir::LoopFn fn;
  fn.fn = {"copy",
           "copies a value",
           flow.symbols,
           {{"x", type.dtype, type.shape, ir::Access::kRead},
            {"y", type.dtype, type.shape, ir::Access::kWrite}},
           ir::InLoops(loops, {ir::MakeStmt(copy)})};
  ir::DropUnusedSymbols(fn.fn);
  return {std::move(fn), {from, to}};
}

}  // namespace hackc::program
