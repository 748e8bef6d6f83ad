// SPDX-License-Identifier: MIT
// Sibling projections of one input become one: their weights are joined along the output features,
// so that the input is read once and the matrix product is large.
//
//   %q = linear(%h, %wq, %bq)   %k = linear(%h, %wk, %bk)
//   %qh = split_heads(%q)       %kh = split_heads(%k)
// becomes
//   %qk_weight = concat(%wq, %wk)   %qk_bias = concat(%bq, %bk)
//   %qk = linear(%h, %qk_weight, %qk_bias)
//   %qh = split_heads(%qk) {first = 0}   %kh = split_heads(%qk) {first = 3584}
//
// Joined are linears with one dtype, weights and biases straight from the checkpoint, all with or
// all without bias, whose only readers are split_heads: those find their features at an offset
// without a copy. Gate and up projections are left: they meet in one kernel as two sums. Graph IR
// to Graph IR. Thread safety: pure function.
#pragma once

#include "compiler/ir/graph.h"

namespace hackc::passes {

ir::GraphModule FuseProjections(const ir::GraphModule& graph);

}  // namespace hackc::passes
