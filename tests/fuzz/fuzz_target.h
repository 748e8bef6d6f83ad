// SPDX-License-Identifier: MIT
// What every fuzz target gives: an entry that takes any bytes, and a mutation that knows their
// form. Two drivers run it: libFuzzer (preset `fuzz`, with libfuzzer_mutator.cc) and replay.cc,
// which needs nothing but the compiler at hand and runs in the usual tests.
//
//   extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) { ...; return 0; }
//   std::string Mutate(std::string input, Random& random) {
//     return MutateText(std::move(input), random);
//   }
//
// What must hold of an input is said with Violation(): it prints and aborts, which both drivers
// report with the input. Thread safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace hackc::fuzz {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  // 0 .. n - 1; 0 when n is 0.
  size_t Below(size_t n) { return n == 0 ? 0 : engine_() % n; }
  bool OneIn(size_t n) { return Below(n) == 0; }
  uint64_t Bits() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

// The target's own mutation: like the input, and mostly still of its form.
std::string Mutate(std::string input, Random& random);

// Prints what was violated and by what, and aborts.
[[noreturn]] void Violation(std::string_view what, std::string_view detail);

// Bytes dropped, doubled, replaced; numbers replaced by those that break things.
std::string MutateBytes(std::string input, Random& random);
// The same, and whole lines and words moved about.
std::string MutateText(std::string input, Random& random);
// A number that tends to break things.
int64_t InterestingInteger(Random& random);

}  // namespace hackc::fuzz
