// SPDX-License-Identifier: MIT
// Whether a schedule fits a Loop-level nest on a target, asked before any pass has run: what is
// accepted lowers, verifies and computes right; INVALID_ARGUMENT says of which axis or stage what
// was expected and what it is.
//
//   HACKC_RETURN_IF_ERROR(CheckSchedule(loop, schedule, target));
//   "product: axis %n: digits use bits of the thread index that those of %m round it use"
//
// What a schedule owes, beside rules B1 and B2 of ir/tile_verify.h:
//   names    axes are loops of the nest, or `T_value` for a softmax axis T
//            (passes/tile/expand_softmax.h)
//   digits   axes round one another use different bits of the thread index; at most 1024 elements
//            in registers
//   ends     a loop's end grows with the axes that are spread over threads, or does not vary with
//            them
//   grid     grid axes are free, outermost, alone in their places and without steps in one another
//   states   an axis that indexes a state covers it with its digits, the same in all places
//   matrix   both operands are 16-bit loads that are staged in rows of whole 16 bytes, row and
//            column axis end like a fragment, sums are over whole tiles without guards
//   rings    those that one loop fills have one depth
//   memory   tiles, rings, weights and sums exchanged between warps fit the target's shared memory
//
// Thread safety: pure function.
#pragma once

#include "absl/status/status.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/target.h"

namespace hackc::schedule {

absl::Status CheckSchedule(const ir::LoopFn& loop, const ir::Schedule& schedule,
                           const Target& target);

}  // namespace hackc::schedule
