// SPDX-License-Identifier: MIT
// Random schedules of a Loop-level kernel, as a tuner would try them: the axes cut in any way,
// thread bits given to any axis, loads staged with any padding and depth. Kernels with a streaming
// softmax get changes of the chosen schedule, since its parts must fit each other.
//
//   ir::Schedule schedule = RandomSchedule(loop, target, seed);
//
// Thread safety: a pure function.
#pragma once

#include "compiler/ir/stmt.h"
#include "compiler/schedule/target.h"

namespace hackc::property {

ir::Schedule RandomSchedule(const ir::LoopFn& loop, const schedule::Target& target, unsigned seed);

}  // namespace hackc::property
