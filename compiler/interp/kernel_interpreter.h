// SPDX-License-Identifier: MIT
// Reference semantics of Kernel IR: a GPU that runs on the CPU. All threads of a block run each
// statement before the next one; blocks run one after another. Refused, with the IR path and the
// threads at fault: accesses out of bounds or misaligned, reads of what was never written
// (registers and shared memory included), races on shared and global memory, barriers that some
// threads do not reach, warp instructions that only a part of a warp reaches, and reads of a
// cp.async copy before its wait and a barrier.
//
// A kernel with roles, mbarriers, bulk copies or wgmma runs warp by warp, in an order drawn from
// `schedule_seed`; bulk copies land at drawn times. Then refused as well: deadlocks, with what each
// warp waits for; accesses that no chain of waits and arrivals orders; units that read what threads
// wrote with no proxy fence between; registers touched while a wgmma uses them, or with no fence
// before.
//
//   FunctionRun run;                              // function_run.h
//   run.arithmetic = Arithmetic::kHardware;       // float32, as the GPU computes
//   HACKC_RETURN_IF_ERROR(RunKernel(kernel, run));
//
// Thread safety: pure function of its arguments.
#pragma once

#include "absl/status/status.h"
#include "compiler/interp/function_run.h"
#include "compiler/ir/stmt.h"

namespace hackc::interp {

struct KernelRunOptions {
  bool reverse_blocks = false;  // the last block first: nothing may depend on the order
  bool find_races = true;       // false: for IR that still lacks its barriers
  uint32_t schedule_seed = 0;
};

absl::Status RunKernel(const ir::KernelFn& kernel, FunctionRun& run,
                       const KernelRunOptions& options = {});

}  // namespace hackc::interp
