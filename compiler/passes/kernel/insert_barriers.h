// SPDX-License-Identifier: MIT
// Kernel IR -> Kernel IR: a barrier wherever threads could meet in shared memory.
//
// Between two barriers a shared buffer may be written, or read, but not both, and not written
// twice. Walking the program in order with the sets of buffers read and written since the last
// barrier, a barrier goes before the first statement that would break this. A loop is walked a
// second time with the state at its end, since its last statements meet its first ones. Rings are
// left alone: pipeline_copies has set their waits and barriers.
//
//   @t[i] = x        @t[i] = x
//   y = @t[j]   ->   barrier
//                    y = @t[j]
#pragma once

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hackc::passes {

absl::StatusOr<ir::KernelFn> InsertBarriers(const ir::KernelFn& kernel);

}  // namespace hackc::passes
