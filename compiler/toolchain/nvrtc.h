// SPDX-License-Identifier: MIT
// NVRTC: CUDA C++ text to a cubin for one exact architecture, and what the kernel needs of the
// hardware. The only user of NVIDIA's compiler; libnvrtc is opened at the first use, never linked.
//
//   ASSIGN(Cubin cubin, CompileCubin(text, "hackc_norm", "sm_90a"));
//   cubin.bytes; cubin.registers;
//
// Looked for in $CUDA_HOME, where the dynamic loader looks (the program's own lib folder among it),
// then in the folder found when this was built. Thread safety: all functions may be called from any
// thread; compiles run at the same time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hackc::toolchain {

struct Cubin {
  std::string bytes;
  uint32_t registers = 0;    // per thread
  uint32_t spill_bytes = 0;  // stored to local memory, per thread
  uint32_t static_shared_bytes = 0;
  std::string warnings;
  double milliseconds = 0;  // that NVRTC took
};

// FAILED_PRECONDITION: no NVRTC. UNIMPLEMENTED: it lacks `arch`. INTERNAL: the text does not
// compile, or NVRTC does not say what the code takes.
absl::StatusOr<Cubin> CompileCubin(const std::string& text, const std::string& entry,
                                   const std::string& arch);

// "13.0"; FAILED_PRECONDITION when there is no NVRTC, saying where it was looked for.
absl::StatusOr<std::string> Version();

// Compute capabilities that the loaded NVRTC has, such as 90 for sm_90 and sm_90a.
absl::StatusOr<std::vector<int>> Capabilities();

// 90 for "sm_90a"; 0 for what is no arch.
int CapabilityOf(const std::string& arch);

// All options, the architecture among them: with the text and the version they decide the cubin. No
// cache but hackc's own is used. Opens no library, so that the server can make keys without one.
std::vector<std::string> Options(const std::string& arch);

}  // namespace hackc::toolchain
