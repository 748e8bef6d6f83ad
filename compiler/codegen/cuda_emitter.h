// SPDX-License-Identifier: MIT
// Kernel IR to CUDA C++ text for NVRTC: the last lowering, statement by statement, with no choice
// in it.
//
//   CudaFn cuda = EmitCuda(kernel);   // cuda.entry == "hackc_" + kernel.fn.name
//
// The text needs no header: it opens with the prelude functions that it uses. Parameters are the
// buffers in order, then the symbols in order as int, then the tensor maps (128 bytes each, at
// multiples of 64). Shared allocations lie at the offsets of ir::LayoutShared in the launch's
// dynamic shared memory. Loops, variables and buffers keep their IR names where C++ allows them.
//
// Throws InternalError on what Kernel IR does not allow. Deterministic. Thread safety: pure.
#pragma once

#include "compiler/ir/stmt.h"

namespace hackc::codegen {

ir::CudaFn EmitCuda(const ir::KernelFn& kernel);

}  // namespace hackc::codegen
