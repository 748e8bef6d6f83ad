// SPDX-License-Identifier: MIT
// How far a result may be from what it is compared with. Every check of golden models takes its
// bound from here.
//
//   double bound = StorageBound(graph, ir::DType::kBF16, 17);   // 17 tokens at most
//
// Thread safety: pure functions.
#pragma once

#include "compiler/ir/graph.h"

namespace hackc::golden {

// Against the stored truth in float64: transformers computes its rotary tables in float32.
inline constexpr double kTruthTolerance = 2e-6;

// Two computations of one graph in float64: sums in another order, constants that went through
// text.
inline constexpr double kReordered = 1e-12;

// Relative distance of two computations of `graph` of which one or both keep values in `storage`
// and sum in float32.
//
// Each value that an operation makes, and each weight, is rounded once to storage. Of many values
// the error is half of the largest one, the unit roundoff: u = 2^-25 for float32, 2^-9 for
// bfloat16, 2^-12 for float16. A sum of n terms in float32 errs by 2^-24 * sqrt(n), a random walk
// over its partial sums; n is the reduced extent of a linear layer or a norm, and head_dim and the
// number of tokens in attention. Errors of different operations are independent, so their squares
// add up over all layers:
//
//   bound = 4 * sqrt(u^2 * roundings + 2^-48 * sum of n)
//
// The 4 is for what later operations make of earlier errors: a softmax turns an error of a score
// into one of that many times the score's size, a residual that cancels leaves the errors of both
// sides.
// RoundingError is u.
double RoundingError(ir::DType storage);
double StorageBound(const ir::GraphModule& graph, ir::DType storage, int64_t tokens);

}  // namespace hackc::golden
