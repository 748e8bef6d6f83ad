// SPDX-License-Identifier: MIT
// Loop IR to Loop IR: neighbouring launches that work side by side become one kernel.
//
//   rotated_query:      for %b { for %s { for %h in 28 { ...x0... @y } } }
//   value_cache_append: for %b { for %s { for %h in 4 { ...x0... @state0 } } }
// becomes
//   for %b { for %s { for %h in 28 { ...x0... @y }  for %h2 in 4 { ...x0... @state0 } } }
//
// For launches without reductions that read a value in common and do not touch what the other
// writes. The outermost loops that both have are shared; what is left inside must be small and
// static, so that one block can do it: a kernel of a few thousand elements costs less than its
// launch. Thread safety: pure function.
#pragma once

#include "compiler/ir/loop_module.h"

namespace hackc::passes {

ir::LoopModule MergeLaunches(const ir::LoopModule& module);

}  // namespace hackc::passes
