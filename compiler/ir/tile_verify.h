// SPDX-License-Identifier: MIT
// Verifies Tile IR: the rules of stmt_verify.h (S1 to S14) and
//
//   B1 schedule  threads are a power of two from 32 to 1024; axes are listed once, with steps >= 1;
//                stages name buffers of the function, with depth >= 1 and padding >= 0; cluster,
//                split and blocks are >= 1; until axes are split both name its loops, or what
//                expand_softmax will make of a softmax_sum
//   B2 digits    only local loops have digits; their extents multiply to the loop's extent; thread
//                digits are powers of two within the block's threads; nested local loops use
//                different bits of the thread index; a matrix digit stands alone, on a contract
//                axis
//   B3 grid      grid loops stand in grid loops only
//   B4 layout    a local array or state has no layout or one digit list for each dimension, of its
//                extent, with different thread bits; shared arrays have none; padding >= 0,
//                alignment a power of two that holds an element;
//                the slots of a ring are counted by the first dimension of a shared array
//   B5 combine   names a state (of that monoid) or a local array, and sums over bits of the block's
//                threads
//   B6 engine    an asynchronous store moves a plain load of a `read` buffer into shared memory;
//                only it has a hint to the caches
//   The kinds (S6) are for, let, acc, accumulate, store, alloc and combine; loops are grid, serial
//   or local, or all sequential (before axes are split); nothing of threads.
//   Not checked: bounds before axes are split, since chunks overhang until split_axes places the
//   guards; that accesses of a layout stand in nests of that layout (distribute refuses them).
//
// Thread safety: a pure function.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/rule.h"
#include "compiler/ir/stmt.h"

namespace hackc::ir {

inline constexpr auto kTileRules =
    Rules('B', {"schedule", "digits", "grid", "layout", "combine", "engine"});

// All errors, as ErrorText of rule.h writes them; empty when the function is good.
std::vector<std::string> VerifyTile(const TileFn& fn);

}  // namespace hackc::ir
