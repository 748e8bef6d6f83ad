// SPDX-License-Identifier: MIT
// Where each temporary value lies in the workspace slab. Values whose lives do not overlap share a
// slot; slots lie one behind the other, each as large as its largest value at the symbols of a run.
//
//   WorkspacePlan plan = PlanWorkspace(flow, groups);
//   plan.offsets.at(groups[value]);   // bytes, a multiple of 256
//
// A value lives from the launch that makes it to the last that reads it, both included, so that no
// launch reads and writes the same memory. What a repeated section reads from outside lives to its
// end. Thread safety: pure.
#pragma once

#include <map>
#include <vector>

#include "compiler/program/dim_expr.h"
#include "compiler/program/flow.h"

namespace hackc::program {

struct WorkspacePlan {
  std::map<int, DimExpr> offsets;  // of each group that holds temporaries and no output
  DimExpr total_bytes;
};

// `groups[v]` is the group of value v, as from SettleCarries.
WorkspacePlan PlanWorkspace(const Flow& flow, const std::vector<int>& groups);

}  // namespace hackc::program
