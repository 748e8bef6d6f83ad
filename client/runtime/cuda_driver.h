// SPDX-License-Identifier: MIT
// The CUDA driver as a table of functions, taken from libcuda.so.1 when first asked for, so that
// programs start on machines without it. Tests hand in a table of their own.
//
//   HACKC_ASSIGN_OR_RETURN(const CudaDriver* driver, LoadCudaDriver());
//   HACKC_RETURN_IF_ERROR(driver->Check(driver->MemAlloc(&pointer, bytes), "cuMemAlloc"));
//
// Thread safety: the table is immutable once loaded, and the driver's functions are thread-safe.
#pragma once

#include <cuda.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hackc::client {

// Member name, function. cuda.h maps some names to versions (cuMemAlloc is cuMemAlloc_v2); both the
// type and the symbol's name follow that mapping.
#define HACKC_CUDA_FUNCTIONS(X)                                   \
  X(Init, cuInit)                                                 \
  X(DeviceGet, cuDeviceGet)                                       \
  X(DeviceGetName, cuDeviceGetName)                               \
  X(DeviceGetAttribute, cuDeviceGetAttribute)                     \
  X(PrimaryContextRetain, cuDevicePrimaryCtxRetain)               \
  X(PrimaryContextRelease, cuDevicePrimaryCtxRelease)             \
  X(ContextPush, cuCtxPushCurrent)                                \
  X(ContextPop, cuCtxPopCurrent)                                  \
  X(ModuleLoadData, cuModuleLoadData)                             \
  X(ModuleUnload, cuModuleUnload)                                 \
  X(ModuleGetFunction, cuModuleGetFunction)                       \
  X(FunctionGetAttribute, cuFuncGetAttribute)                     \
  X(FunctionSetAttribute, cuFuncSetAttribute)                     \
  X(LaunchKernel, cuLaunchKernel)                                 \
  X(LaunchKernelEx, cuLaunchKernelEx)                             \
  X(TensorMapEncodeTiled, cuTensorMapEncodeTiled)                 \
  X(MemAlloc, cuMemAlloc)                                         \
  X(MemFree, cuMemFree)                                           \
  X(MemHostAlloc, cuMemHostAlloc)                                 \
  X(MemFreeHost, cuMemFreeHost)                                   \
  X(MemcpyHostToDevice, cuMemcpyHtoD)                             \
  X(MemcpyDeviceToHost, cuMemcpyDtoH)                             \
  X(MemsetD8Async, cuMemsetD8Async)                               \
  X(MemsetD32Async, cuMemsetD32Async)                             \
  X(StreamSynchronize, cuStreamSynchronize)                       \
  X(ContextSynchronize, cuCtxSynchronize)                         \
  X(GraphCreate, cuGraphCreate)                                   \
  X(GraphAddKernelNode, cuGraphAddKernelNode)                     \
  X(GraphKernelNodeSetAttribute, cuGraphKernelNodeSetAttribute)   \
  X(GraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams) \
  X(GraphInstantiate, cuGraphInstantiateWithFlags)                \
  X(GraphLaunch, cuGraphLaunch)                                   \
  X(GraphDestroy, cuGraphDestroy)                                 \
  X(GraphExecDestroy, cuGraphExecDestroy)                         \
  X(GetErrorName, cuGetErrorName)                                 \
  X(GetErrorString, cuGetErrorString)

struct CudaDriver {
#define HACKC_CUDA_MEMBER(member, function) decltype(&function) member = nullptr;
  HACKC_CUDA_FUNCTIONS(HACKC_CUDA_MEMBER)
#undef HACKC_CUDA_MEMBER
  // Since CUDA 12.4; null in older drivers.
  CUresult (*FunctionGetParamInfo)(CUfunction, size_t, size_t*, size_t*) = nullptr;

  // "what: CUDA_ERROR_OUT_OF_MEMORY (out of memory)". RESOURCE_EXHAUSTED for memory, else INTERNAL.
  absl::Status Check(CUresult result, absl::string_view what) const;
};

// Loads the driver and initialises it, once. FAILED_PRECONDITION saying what is missing.
absl::StatusOr<const CudaDriver*> LoadCudaDriver();

// A function beyond the table, by its exact symbol ("cuEventCreate"); null when the driver lacks
// it.
void* FindCudaFunction(const char* symbol);

// Makes a context current for a scope and restores the thread's own afterwards.
class ScopedContext {
 public:
  ScopedContext(const CudaDriver& driver, CUcontext context);
  ~ScopedContext();
  ScopedContext(const ScopedContext&) = delete;
  ScopedContext& operator=(const ScopedContext&) = delete;
  const absl::Status& status() const { return status_; }

 private:
  const CudaDriver& driver_;
  absl::Status status_;
};

}  // namespace hackc::client
