// SPDX-License-Identifier: MIT
// What a kernel must move and compute, from a walk over its loops: the floor that reports compare
// against.
//
//   y[m, n] = sum_k x[m, k] * w[n, k]   ->   bytes: x, w and y once each; operations: 2 m n k
//
// A buffer counts each distinct element that its indices can reach, once. Loops whose extent
// depends on an outer axis (causal attention) count their mean length; the parts of one axis
// (attention split over keys) count together; what a mask leaves out before it begins (a window)
// does not count. Thread safety: pure.
#pragma once

#include "compiler/ir/stmt.h"
#include "compiler/program/program.h"

namespace hackc::program {

struct Traffic {
  DimExpr bytes_moved;
  DimExpr operations;  // arithmetic of floats; an accumulation counts as one
};

Traffic TrafficOf(const ir::LoopFn& loop);

}  // namespace hackc::program
