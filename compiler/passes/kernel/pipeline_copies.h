// SPDX-License-Identifier: MIT
// Kernel IR -> Kernel IR: a loop that fills rings in shared memory fills them ahead, so that the
// copies of later iterations run beside the work on earlier ones.
//
//   for %k in trips {                        alloc @t: shared[3, ...] slots 3
//     alloc @t: shared[3, ...] slots 3       if 0 < trips { copy 0 -> @t[0] } commit
//     copy k -> @t[k % 3]             ->     if 1 < trips { copy 1 -> @t[1] } commit
//     work on @t[k % 3]                      for %k in trips {
//   }                                          wait until 1 group is pending; barrier
//                                              if k + 2 < trips { copy k + 2 -> @t[(k + 2) % 3] }
//                                              commit
//                                              work on @t[k % 3]
//                                            }
//
// Why one barrier is enough: it makes the waited copies of all threads visible, and it comes after
// every thread has finished with the slot that the next copy overwrites, which was read one
// iteration before. A ring of one loop must have one depth. Nested in another loop, a barrier goes
// before the first copies; otherwise they go before the statements that they do not depend on, so
// that nothing else is waited for first.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hackc::passes {

absl::StatusOr<ir::KernelFn> PipelineCopies(const ir::KernelFn& kernel);

}  // namespace hackc::passes
