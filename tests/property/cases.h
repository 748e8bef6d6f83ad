// SPDX-License-Identifier: MIT
// How many cases a law is tried on, and from which seed. HACKC_PROPERTY_CASES=50 tries fifty times
// as many, HACKC_PROPERTY_SEED=17 starts at 17, which repeats a failure that named it.
//
//   ForEachSeed(40, [](unsigned seed) { ... });   // stops at the first failure
//
// Thread safety: test code, one thread.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include "gtest/gtest.h"

namespace hackc::property {

inline unsigned FromEnvironment(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

template <typename Law>
void ForEachSeed(unsigned usual, Law&& law) {
  const unsigned first = FromEnvironment("HACKC_PROPERTY_SEED", 1);
  const unsigned cases = usual * FromEnvironment("HACKC_PROPERTY_CASES", 1);
  for (unsigned i = 0; i < cases && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("HACKC_PROPERTY_SEED=" + std::to_string(first + i));
    law(first + i);
  }
}

}  // namespace hackc::property
