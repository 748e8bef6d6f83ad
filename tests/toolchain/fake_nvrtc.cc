// SPDX-License-Identifier: MIT
// An NVRTC with a driver's cache that has every program already: as the real one does from 12.9 on,
// it reports nothing unless it is told --no-cache, which it knows from 12.9 on.
//
//   HACKC_FAKE_NVRTC=12.9     the version; "12.9 silent" never reports
//
// Built as libnvrtc.so.13 in a folder that a test makes its CUDA_HOME. Thread safety: none; its
// test compiles once in a process.
#include <nvrtc.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::string& TheLog() {
  static std::string log;
  return log;
}

int Number() {  // 1209
  int major = 0, minor = 0;
  std::sscanf(std::getenv("HACKC_FAKE_NVRTC"), "%d.%d", &major, &minor);
  return 100 * major + minor;
}

}  // namespace

nvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = Number() / 100;
  *minor = Number() % 100;
  return NVRTC_SUCCESS;
}

const char* nvrtcGetErrorString(nvrtcResult) { return "an error"; }

nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  *count = 1;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int* archs) {
  *archs = 90;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char*, const char*, int,
                               const char* const*, const char* const*) {
  *program = nullptr;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram*) { return NVRTC_SUCCESS; }

nvrtcResult nvrtcCompileProgram(nvrtcProgram, int count, const char* const* options) {
  const bool fresh = std::any_of(options, options + count, [](const char* option) {
    return std::strcmp(option, "--no-cache") == 0;
  });
  const bool silent = std::strstr(std::getenv("HACKC_FAKE_NVRTC"), "silent") != nullptr;
  if (fresh && Number() < 1209) return NVRTC_ERROR_INVALID_OPTION;
  if ((fresh || Number() < 1209) && !silent) {
    TheLog() = "ptxas info    : Used 42 registers, used 1 barriers, 256 bytes smem\n";
  }
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram, size_t* size) {
  *size = 5;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram, char* cubin) {
  std::memcpy(cubin, "cubin", 5);
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram, size_t* size) {
  *size = TheLog().size() + 1;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram, char* log) {
  std::memcpy(log, TheLog().c_str(), TheLog().size() + 1);
  return NVRTC_SUCCESS;
}
