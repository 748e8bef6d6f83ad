// SPDX-License-Identifier: MIT
// Tile IR -> Tile IR, before axes are split: a reduction whose state is (maximum, sum, accumulator)
// becomes the streaming form over chunks of its axis, so that each part is an ordinary loop nest
// with its own layout, and the weighted sum is a contraction like any other.
//
//   acc %o: softmax_sum [128]
//   for %j: reduce in E { let %s = ...  for %e { %o[e] <- (%s, v[j, e]) } }
//   ->
//   acc %o_sum: sum [128], %o_max = -inf, %o_total = 0
//   let %j_first = the first chunk that the block's first row sees
//   for %j_chunk in ceil(E / C) - %j_first {
//     for %j_score in C { %o_score[j] = masked score; max }
//     rescale %o_sum and %o_total by exp(old max - new max)
//     for %j_weight in C { %o_weight[j] = exp(score - max); sum }
//     for %j_value: contract in C { for %e { %o_sum[e] <- w * v } }
//   }
//
// The chunk is the tile of %j in the schedule; its digits are those of %j_score and %j_weight.
// %j_value takes the entry "j_value" when the schedule has one, else it runs one step after
// another. %j_first comes from masks: scores of `select(%j > f(row), x, -inf)`, guards of the
// update, `and` of these, where f grows with the rows of a block. Without one there is no such let.
// A log_sum_exp over the same scores in the same loop is read from the same state: %o_max
// + log(%o_total). Invariant kept: a state that saw no score above -inf reads as 0.
// Thread safety: a pure function.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hackc::passes {

absl::StatusOr<ir::TileFn> ExpandSoftmax(const ir::TileFn& tile);

}  // namespace hackc::passes
