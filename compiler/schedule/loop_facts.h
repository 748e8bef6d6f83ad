// SPDX-License-Identifier: MIT
// What the schedule choice needs to know of a Loop-level kernel: its axes with roles, bounds and
// nesting, and its contractions with the roles of their axes. Facts only; no choice is made here.
//
//   LoopFacts facts = FindFacts(loop);
//   facts.contractions[0].m_axes == {"b", "s"}
//
// Thread safety: pure function.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/ranges.h"
#include "compiler/ir/stmt.h"

namespace hackc::schedule {

struct AxisFacts {
  std::string name;
  ir::AxisRole role = ir::AxisRole::kFree;
  int64_t min_extent = 1;  // over all symbol values and outer coordinates
  int64_t max_extent = 1;
  bool is_static = false;
  bool can_be_grid =
      false;  // by itself: free, never empty, alone in its place, and so are those round it
  std::vector<std::string> outer;  // axes round it, outermost first
};

// One sum of products. `a` and `b` are the loads' buffers ("" when an operand is not one plain
// load).
struct Contraction {
  std::string k_axis;  // the innermost contract axis
  std::string a, b;
  std::vector<std::string> m_axes;  // in `a` only, outermost first
  std::vector<std::string> n_axes;  // in `b` only
  ir::DType a_dtype = ir::DType::kF32, b_dtype = ir::DType::kF32;
};

struct LoopFacts {
  std::vector<AxisFacts> axes;  // in program order
  std::vector<Contraction> contractions;
  std::vector<std::string> softmax_axes;    // reduce axes of softmax_sum states
  std::vector<std::string> softmax_values;  // buffers that the weighted values come from
  int widest_store = 1;                     // bytes of the widest element stored
  const AxisFacts* Find(const std::string& axis) const {  // null: no such axis
    return FindBy(axes, &AxisFacts::name, axis);
  }
};

LoopFacts FindFacts(const ir::LoopFn& loop);

}  // namespace hackc::schedule
