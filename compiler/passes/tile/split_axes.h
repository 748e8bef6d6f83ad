// SPDX-License-Identifier: MIT
// Tile IR -> Tile IR: cuts every axis as the schedule says, which turns the element-by-element nest
// into the program of one block.
//
//   for %m in seq { for %n in N { acc %s; for %k in K { %s <- x * w }; @y[m, n] = %s } }
//   ->
//   for %m: grid.x { for %n: grid.x {
//     acc %s: sum [64, 64] over threads and registers
//     for %k: serial {
//       alloc shared %x_tile [64, 32]; fill it; alloc shared %w_tile; fill it
//       for %k_step: serial {
//         x registers = ...; w registers = ...; for %k, %m, %n: local { %s[m, n] <- x * w }
//       }
//     }
//     for %m, %n: local { @y[...] = %s[m, n] if inside }
//   } }
//
// How: every value that depends on a local axis becomes a local tile with one dimension for each
// such axis; each statement becomes its own nest over the axes it depends on. Loads from memory get
// their own nests, so that they can become vector accesses. Masks: a load is guarded by the bounds
// of its buffer wherever the index is not provably inside; accumulations by the validity of the
// axes they sum over; stores by the validity of every axis round them. Values in the overhang are
// therefore arbitrary but never used.
//
// Invariants needed: Loop-level nest (after expand_softmax), grid axes outermost. Kept: names
// unique.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hackc::passes {

absl::StatusOr<ir::TileFn> SplitAxes(const ir::TileFn& tile);

}  // namespace hackc::passes
