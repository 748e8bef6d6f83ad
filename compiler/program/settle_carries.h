// SPDX-License-Identifier: MIT
// Makes every value that goes from one iteration of a section to the next stay in one place, and
// every output a value of its own: what follows only has to give each group of values memory.
//
//   layers x28 carry %x: %a = attention(%x); %b = mlp(%a); yield %b
//
// %x is not read once %b is made, so %b may take %x's place: both are one group, together with the
// value that enters the first iteration and the one that leaves the last. Where a value is still
// needed, a copy at the end of the iteration (or before the section, or after all) takes its place;
// residual networks need none. Thread safety: pure.
#pragma once

#include <vector>

#include "compiler/program/flow.h"

namespace hackc::program {

// Adds the copies needed and returns for each value the number of its group: values of one group
// share memory. Groups are numbered by one of their values.
std::vector<int> SettleCarries(Flow& flow);

}  // namespace hackc::program
