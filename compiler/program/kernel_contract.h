// SPDX-License-Identifier: MIT
// The launch contract of a kernel: all that a client needs besides the cubin.
//
//   Kernel contract = MakeContract(loop, kernel, cuda.entry, "sm_90a");
//
// The parameter block holds the buffers' pointers in order, then the symbols as 32-bit integers.
// Static shared memory, registers and the cubin's size are known only after NVRTC. Thread safety:
// pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/program/program.h"

namespace hackc::program {

Kernel MakeContract(const ir::LoopFn& loop, const ir::KernelFn& kernel, const std::string& entry,
                    const std::string& arch);

DType FromIr(ir::DType dtype);
std::optional<ir::DType> ToIr(DType dtype);  // none for kUnspecified
std::vector<Symbol> FromIr(const std::vector<ir::SymbolDecl>& symbols);

}  // namespace hackc::program
