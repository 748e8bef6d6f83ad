// SPDX-License-Identifier: MIT
// Moves launches that depend on weights and constants alone into the prepare section, run once at
// load.
//
//   layers x28: %w = join(%q_weight, %k_weight); %y = linear(%x, %w)
// becomes
//   prepare: layers x28: %w = join(...)          // %w is prepared, one tensor for each layer
//   layers x28: %y = linear(%x, %w)
//
// What depends only on weights outside of the layers is made once, not once for each layer, and
// equal launches on equal arguments become one. A value that is returned or carried stays where it
// is. Thread safety: pure.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compiler/program/flow.h"

namespace hackc::program {

void SplitPrepare(Flow& flow);

// Text that two launches share exactly when one kernel serves both: the Loop text without its name
// and purpose, with the bounds of the symbols that it uses.
std::string KernelText(const ir::LoopFn& fn);

// Launches, by their place, kernel and what they read.
class LaunchTable {
 public:
  // Whether an equal launch was here before: then `same(value, id)` for each value that `launch`
  // writes and what the other wrote in its stead. `id` of a value is equal for equal values.
  bool IsRepeat(std::string place, const FlowLaunch& launch, const std::function<uint32_t(int)>& id,
                const std::function<void(int, uint32_t)>& same);

 private:
  std::map<std::string, std::vector<uint32_t>> made_;
};

}  // namespace hackc::program
