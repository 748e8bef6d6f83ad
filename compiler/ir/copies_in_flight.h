// SPDX-License-Identifier: MIT
// Whether a kernel reads shared memory before the asynchronous copy into it has been waited for:
// runs the copies, commits, waits and reads of one thread, in the first block, with symbols at
// their largest and a few rounds of each loop. What it does not find may still be wrong in other
// blocks or rounds, or for other threads (the interpreter looks for races of all).
//
//   for (const EarlyRead& read : ReadsInFlight(kernel)) Report(read.nest, read.buffer);
//
// Thread safety: a pure function.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/stmt.h"

namespace hackc::ir {

struct EarlyRead {
  std::vector<Stmt> nest;  // the statement that reads, last, and those round it
  std::string buffer;
};

std::vector<EarlyRead> ReadsInFlight(const KernelFn& kernel);

}  // namespace hackc::ir
