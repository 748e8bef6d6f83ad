// SPDX-License-Identifier: MIT
#include "client/runtime/cuda_driver.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"

namespace hackc::client {
namespace {

#define HACKC_CUDA_TEXT_(text) #text
#define HACKC_CUDA_TEXT(text) HACKC_CUDA_TEXT_(text)

// Never closed: contexts may outlive every user of the table.
void* Library() { return dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); }

absl::StatusOr<const CudaDriver*> Load() {
  void* library = Library();
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("no CUDA driver on this machine: ", dlerror(),
                     "; install NVIDIA's driver, or run where a GPU is"));
  }
  auto* driver = new CudaDriver;
#define HACKC_CUDA_LOAD(member, function)                                                    \
  driver->member =                                                                           \
      reinterpret_cast<decltype(driver->member)>(dlsym(library, HACKC_CUDA_TEXT(function))); \
  if (driver->member == nullptr) {                                                           \
    return absl::FailedPreconditionError(                                                    \
        "the CUDA driver is too old: it lacks " HACKC_CUDA_TEXT(function));                  \
  }
  HACKC_CUDA_FUNCTIONS(HACKC_CUDA_LOAD)
#undef HACKC_CUDA_LOAD
  driver->FunctionGetParamInfo = reinterpret_cast<decltype(driver->FunctionGetParamInfo)>(
      dlsym(library, "cuFuncGetParamInfo"));
  if (CUresult result = driver->Init(0); result != CUDA_SUCCESS) {
    return absl::FailedPreconditionError(driver->Check(result, "cuInit").message());
  }
  return driver;
}

}  // namespace

absl::Status CudaDriver::Check(CUresult result, absl::string_view what) const {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const char* name = nullptr;
  const char* text = nullptr;
  if (GetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "unknown CUDA error";
  if (GetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr) text = "no description";
  std::string message = absl::StrCat(what, ": ", name, " (", text, ")");
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

absl::StatusOr<const CudaDriver*> LoadCudaDriver() {
  static const auto* driver = new absl::StatusOr<const CudaDriver*>(Load());
  return *driver;
}

void* FindCudaFunction(const char* symbol) {
  void* library = Library();
  return library == nullptr ? nullptr : dlsym(library, symbol);
}

ScopedContext::ScopedContext(const CudaDriver& driver, CUcontext context)
    : driver_(driver), status_(driver.Check(driver.ContextPush(context), "cuCtxPushCurrent")) {}

ScopedContext::~ScopedContext() {
  CUcontext popped = nullptr;
  if (status_.ok()) driver_.ContextPop(&popped);
}

}  // namespace hackc::client
