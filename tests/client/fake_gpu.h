// SPDX-License-Identifier: MIT
// A CUDA driver for tests: device memory is host memory, a "cubin" is its kernel's entry name, and
// launching runs a C++ function on the parameters that were passed, so that a launch list is judged
// by what it computes and not only by what it calls.
//
//   FakeGpu gpu(program);
//   gpu.kernels["embed"] = [](const FakeGpu::Launch& launch) { launch.Pointer<float>(1)[0] = 7; };
//   auto runtime = Runtime::Load(gpu.driver(), {program, gpu.Cubins()}, 0);
//
// Thread safety: one FakeGpu at a time in a process.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "client/runtime/cuda_driver.h"
#include "client/runtime/program_check.h"
#include "hackc/v1/program.pb.h"

namespace hackc::client {

class FakeGpu {
 public:
  struct Launch {
    std::string name;
    std::vector<unsigned> grid, block, cluster;
    unsigned shared = 0;
    CUstream stream = nullptr;
    std::string parameters;  // bytes at the contract's offsets
    const v1::Kernel* kernel = nullptr;

    template <typename T>
    T* Pointer(int param) const {
      T* pointer = nullptr;
      std::memcpy(&pointer, parameters.data() + kernel->params(param).offset(), sizeof(pointer));
      return pointer;
    }
    int32_t Int(int param) const {
      int32_t value = 0;
      std::memcpy(&value, parameters.data() + kernel->params(param).offset(), sizeof(value));
      return value;
    }
  };

  explicit FakeGpu(const v1::Program& program);
  ~FakeGpu();

  const CudaDriver& driver() const { return driver_; }
  // One for each kernel of the program.
  std::vector<std::string> Cubins() const;

  std::map<std::string, std::function<void(const Launch&)>> kernels;
  std::vector<Launch> launches;
  std::set<void*> allocations;
  std::set<void*> host_allocations;
  std::set<std::pair<int, int>> attributes_set;  // attribute, value
  int major = 9;
  int minor = 0;
  int shared_optin = 232448;
  int contexts = 0;  // retained minus released
  int pushed = 0;    // pushed minus popped
  int synchronized = 0;
  int graphs = 0;                // created minus destroyed
  std::vector<Launch> captured;  // nodes of the latest graph
  int nodes_updated = 0;
  uint32_t wrong_parameter_offset = 0;  // added to what the driver says of every parameter
  CUresult next_launch_result = CUDA_SUCCESS;
  size_t memory_limit = SIZE_MAX;
  size_t host_memory_limit = SIZE_MAX;  // of one pinned buffer

 private:
  static void TakeParameters(CUfunction function, void** parameters, Launch* taken);
  static Launch NodeLaunch(const CUDA_KERNEL_NODE_PARAMS& node);
  static CUresult DoLaunch(CUfunction function, Launch launch, void** parameters);
  v1::Program program_;
  CudaDriver driver_;
};

}  // namespace hackc::client
