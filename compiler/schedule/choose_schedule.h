// SPDX-License-Identifier: MIT
// Loop-level kernel + target -> Schedule, from facts of the loops and of the hardware; never from
// the name of an operation. Forms are tried in order of preference, and the first that
// CheckSchedule takes is chosen; FAILED_PRECONDITION where it takes none, with the last refusal.
// The forms, by what the nest is made of:
//   softmax    a streaming softmax: rows of scores over threads, chunks of keys staged in shared
//              memory
//   product    a contraction with enough rows: a tile over threads and registers, both operands
//              staged
//   narrow     a contraction with few rows: lanes over the contracted axis, warps over columns; or
//              the columns are the rows of matrix instructions, and warps share the contracted axis
//   rows       reductions of rows: one block per row, threads over the reduced axis
//   pointwise  no reduction: threads over the last axes, 16 bytes each; nests side by side share a
//              block
//
//   ASSIGN(Schedule schedule, ChooseSchedule(loop, FindTarget("sm_90a").value()));
//
// Thread safety: pure function.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/target.h"

namespace hackc::schedule {

// A contraction of at most this many rows is narrow: bound by reading its other operand once.
inline constexpr int64_t kFewRows = 8;
inline constexpr int64_t kFewMatrixRows = 16;  // with matrix instructions, or in two blocks

absl::StatusOr<ir::Schedule> ChooseSchedule(const ir::LoopFn& loop, const Target& target);

}  // namespace hackc::schedule
