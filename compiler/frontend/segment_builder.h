// SPDX-License-Identifier: MIT
// Adds typed operations and sources to one segment. Every helper returns the name of the value it made;
// names are made unique over the module by a suffix.
//
//   SegmentBuilder builder(segment, names);
//   std::string w = builder.Weight("norm_weight", dtype, {IntLit(64)}, "model.norm.weight");
//   std::string y = builder.Op("normed", {dtype, shape}, ir::GraphRmsNorm{x, w, 1e-6});
//
// Thread safety: one builder, one thread.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/graph.h"

namespace hackc::frontend {

class SegmentBuilder {
 public:
  // `names`: all names of the module so far; both must outlive the builder.
  SegmentBuilder(ir::GraphSegment& segment, std::set<std::string>& names)
      : segment_(segment), names_(names) {}

  // `base`, or base_1, base_2, ... whichever is free; it is taken then.
  std::string Unique(const std::string& base) {
    std::string name = base;
    for (int i = 1; !names_.insert(name).second; ++i) name = base + "_" + std::to_string(i);
    return name;
  }

  std::string Source(const std::string& base, ir::SourceDecl::Kind kind, ir::ValueType type,
                     std::string weight_name) {
    segment_.sources.push_back({Unique(base), kind, std::move(type), std::move(weight_name), {}});
    return segment_.sources.back().name;
  }
  std::string Weight(const std::string& base, ir::ValueType type, std::string weight_name) {
    return Source(base, ir::SourceDecl::Kind::kWeight, std::move(type), std::move(weight_name));
  }

  std::string Op(const std::string& base, ir::ValueType type, ir::GraphOpVariant op) {
    segment_.ops.push_back({Unique(base), std::move(type), std::move(op)});
    return segment_.ops.back().out;
  }

  // Publishes a value under a name outside.
  std::string Publish(const std::string& value, const std::string& base) {
    segment_.yields.push_back(value);
    segment_.results.push_back(Unique(base));
    return segment_.results.back();
  }

 private:
  ir::GraphSegment& segment_;
  std::set<std::string>& names_;
};

}  // namespace hackc::frontend
