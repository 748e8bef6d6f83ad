// SPDX-License-Identifier: MIT
// Moves launches that depend on weights and constants alone into the prepare section, run once at
// load.
//
//   layers x28: %w = join(%q_weight, %k_weight); %y = linear(%x, %w)
// becomes
//   prepare: layers x28: %w = join(...)          // %w is prepared, one tensor for each layer
//   layers x28: %y = linear(%x, %w)
//
// What depends only on weights outside of the layers is made once, not once for each layer. A value
// that is returned or carried stays where it is. Thread safety: pure.
#pragma once

#include "compiler/program/flow.h"

namespace hackc::program {

void SplitPrepare(Flow& flow);

}  // namespace hackc::program
