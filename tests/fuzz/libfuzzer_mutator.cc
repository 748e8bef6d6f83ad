// SPDX-License-Identifier: MIT
// Gives a target's own mutation to libFuzzer, which takes it half of the time.
#include <algorithm>
#include <cstring>

#include "tests/fuzz/fuzz_target.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, max_size);
  hackc::fuzz::Random random(seed);
  const std::string mutated =
      hackc::fuzz::Mutate(std::string(reinterpret_cast<const char*>(data), size), random);
  const size_t length = std::min(mutated.size(), max_size);
  std::memcpy(data, mutated.data(), length);
  return length;
}
