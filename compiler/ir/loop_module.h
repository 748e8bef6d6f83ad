// SPDX-License-Identifier: MIT
// A whole model as kernels at Loop level: what fusion leaves. Each launch is one kernel and the
// values that its buffers stand for. Program building walks it: deduplicates kernels, plans
// buffers, splits off what depends on weights only (the prepare section).
// Thread safety: plain values.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/ir/value.h"

namespace hackc::ir {

// `args[i]` is the value that fn.buffers[i] is bound to. A written value that is also a source of
// kind kState is updated in place.
struct LoopLaunch {
  LoopFn fn;
  std::vector<std::string> args;
  // Values made by this launch (those bound to written buffers), with their types.
  std::vector<std::pair<std::string, ValueType>> results;
};

using LoopSegment = Segment<LoopLaunch>;
using LoopModule = Module<LoopLaunch>;

}  // namespace hackc::ir
