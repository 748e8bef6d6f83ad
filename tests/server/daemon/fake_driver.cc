// SPDX-License-Identifier: MIT
// A libcuda.so.1 with one GPU, or one that crashes, for machines without a driver.
#include <cstdlib>
#include <cstring>

extern "C" {

int cuInit(unsigned) {
  if (std::getenv("FAKE_CUDA_CRASH") != nullptr) std::abort();
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}

int cuDeviceGet(int* device, int) {
  *device = 0;
  return 0;
}

int cuDeviceGetName(char* name, int size, int) {
  std::strncpy(name, "NVIDIA Fake", size);
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 8 : 0;  // compute capability 8.0
  return 0;
}

}  // extern "C"
