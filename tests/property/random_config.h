// SPDX-License-Identifier: MIT
// Random small decoders, as the config.json that the front end reads: awkward sizes on purpose (odd
// hidden and vocabulary sizes, groups of 1, 2, 3, 5 and 7 heads, head dims that no tile divides),
// with and without biases, tied heads, norms of queries and keys, sliding windows, every kind of
// rotary embedding.
//
//   frontend::BuildGraph(RandomConfig(seed), RandomOptions(seed));
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "compiler/frontend/frontend.h"

namespace hackc::property {

std::string RandomConfig(unsigned seed);
frontend::FrontendOptions RandomOptions(unsigned seed);

}  // namespace hackc::property
