// SPDX-License-Identifier: MIT
// Tile IR -> Kernel IR: the block's program becomes one thread's. Nothing is decided here: grid
// loops become block indices, thread digits bits of the thread index, register digits unrolled
// loops, local tiles register arrays; a Combine becomes shuffles inside warps and one exchange
// through shared memory between them; a nest over a matrix digit becomes fragment loads and matrix
// instructions.
//
//   for %m: local in 64 [register 4, thread 16 stride 16] { @s[%m] = ... }
//   ->
//   for %m_r0: unroll in 4 { @s[%m_r0] = ... with m = (m_r0 * 16) + ((thread.x // 16) % 16) }
//
// A store to memory whose nest does not use every bit of the thread index is done by the thread
// whose other bits are 0. Barriers are not placed here (see insert_barriers).
#pragma once

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hackc::passes {

absl::StatusOr<ir::KernelFn> Distribute(const ir::TileFn& tile);

}  // namespace hackc::passes
