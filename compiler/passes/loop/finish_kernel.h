// SPDX-License-Identifier: MIT
// The last step of writing a kernel: buffers get canonical names and declarations, and the kernel
// gets its own name from the labels of what it computes.
//
// While a body is being written, values outside of the kernel are loads and stores of
// OutsideName(value) and reduction states are KernelName(name), so that neither can be taken for an
// operation's axes or values.
// Thread safety: pure functions; NameSet is for one thread.
#pragma once

#include <string>
#include <vector>

#include "compiler/passes/loop/loop_builder.h"

namespace hackc::passes {

inline std::string OutsideName(const std::string& value) { return "=" + value; }
inline std::string KernelName(const std::string& name) { return "#" + name; }
inline bool IsKernelName(const std::string& name) { return name[0] == '=' || name[0] == '#'; }

// `computed` are the values that the kernel computes, the sink among them.
ir::LoopLaunch FinishKernel(const SegmentValues& values, const ir::TensorOp& sink,
                            const std::vector<std::string>& computed, const ir::Block& body);

}  // namespace hackc::passes
