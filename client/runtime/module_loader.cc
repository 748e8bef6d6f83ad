// SPDX-License-Identifier: MIT
#include "client/runtime/module_loader.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler/support/status_macros.h"

namespace hackc::client {
namespace {

// Up to this much is allowed without asking (cuFuncSetAttribute).
constexpr uint32_t kDefaultSharedBytes = 48 << 10;

absl::StatusOr<int> Attribute(const CudaDriver& driver, CUdevice_attribute attribute,
                              CUdevice device) {
  int value = 0;
  HACKC_RETURN_IF_ERROR(
      driver.Check(driver.DeviceGetAttribute(&value, attribute, device), "cuDeviceGetAttribute"));
  return value;
}

// A contract that disagrees with the code would make the kernel read other parameters than were
// passed.
absl::Status CheckParameters(const CudaDriver& driver, const v1::Kernel& kernel,
                             CUfunction function) {
  if (driver.FunctionGetParamInfo == nullptr) return absl::OkStatus();
  for (int i = 0; i <= kernel.params_size(); ++i) {
    size_t offset = 0;
    size_t size = 0;
    bool exists = driver.FunctionGetParamInfo(function, i, &offset, &size) == CUDA_SUCCESS;
    if (i == kernel.params_size()) {
      if (!exists) break;
      return absl::DataLossError(
          absl::StrCat("the code has more than the contract's ", i, " parameters"));
    }
    const v1::Param& param = kernel.params(i);
    if (!exists || offset != param.offset() || size != param.size()) {
      return absl::DataLossError(absl::StrCat("parameter ", i, " (", param.name(), ") is at ",
                                              offset, " with ", size, " bytes in the code, at ",
                                              param.offset(), " with ", param.size(),
                                              " bytes in the contract"));
    }
  }
  return absl::OkStatus();
}

absl::Status LoadModule(const CudaDriver& driver, const v1::Kernel& kernel,
                        const std::string& cubin, std::vector<CUmodule>* modules,
                        CUfunction* function) {
  CUmodule module = nullptr;
  HACKC_RETURN_IF_ERROR(
      driver.Check(driver.ModuleLoadData(&module, cubin.data()), "cuModuleLoadData"));
  modules->push_back(module);
  HACKC_RETURN_IF_ERROR(
      driver.Check(driver.ModuleGetFunction(function, module, kernel.entry().c_str()),
                   absl::StrCat("cuModuleGetFunction of ", kernel.entry())));
  if (kernel.dynamic_shared_bytes() + uint64_t{kernel.static_shared_bytes()} >
      kDefaultSharedBytes) {
    HACKC_RETURN_IF_ERROR(driver.Check(
        driver.FunctionSetAttribute(*function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    static_cast<int>(kernel.dynamic_shared_bytes())),
        absl::StrCat("cuFuncSetAttribute of ", kernel.dynamic_shared_bytes(), " shared bytes")));
  }
  uint64_t cluster = 1;
  for (uint32_t extent : kernel.cluster()) cluster *= extent;
  if (cluster > 8) {  // larger ones are not portable and have to be asked for
    HACKC_RETURN_IF_ERROR(
        driver.Check(driver.FunctionSetAttribute(
                         *function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
                     "cuFuncSetAttribute of the cluster size"));
  }
  int threads = 0;
  HACKC_RETURN_IF_ERROR(driver.Check(
      driver.FunctionGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, *function),
      "cuFuncGetAttribute"));
  uint64_t block = uint64_t{kernel.block(0)} * kernel.block(1) * kernel.block(2);
  if (block > static_cast<uint64_t>(threads)) {
    return absl::DataLossError(
        absl::StrCat("the code allows ", threads, " threads in a block, the contract has ", block));
  }
  return CheckParameters(driver, kernel, *function);
}

}  // namespace

bool ArchRunsOn(absl::string_view arch, int major, int minor) {
  if (!absl::ConsumePrefix(&arch, "sm_")) return false;
  char suffix = '\0';
  if (!arch.empty() && absl::ascii_isalpha(arch.back())) {
    suffix = arch.back();
    arch.remove_suffix(1);
  }
  int number = 0;
  if (!absl::SimpleAtoi(arch, &number) || number / 10 != major) return false;
  if (suffix == 'a') return number % 10 == minor;
  return (suffix == '\0' || suffix == 'f') && number % 10 <= minor;
}

absl::Status CheckDevice(const CudaDriver& driver, const v1::Program& program, CUdevice device) {
  HACKC_ASSIGN_OR_RETURN(int major,
                         Attribute(driver, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  HACKC_ASSIGN_OR_RETURN(int minor,
                         Attribute(driver, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  HACKC_ASSIGN_OR_RETURN(
      int shared, Attribute(driver, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device));
  char name[128] = "";
  driver.DeviceGetName(name, sizeof(name), device);
  name[sizeof(name) - 1] = '\0';
  auto check_arch = [&](const std::string& arch) -> absl::Status {
    if (ArchRunsOn(arch, major, minor)) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "the program is compiled for ", arch, ", the device (", name, ") is sm_", major, minor));
  };
  HACKC_RETURN_IF_ERROR(check_arch(program.arch()));
  for (const v1::Kernel& kernel : program.kernels()) {
    HACKC_RETURN_IF_ERROR(check_arch(kernel.arch()));
    uint64_t bytes = uint64_t{kernel.static_shared_bytes()} + kernel.dynamic_shared_bytes();
    if (bytes > static_cast<uint64_t>(shared)) {
      return absl::FailedPreconditionError(absl::StrCat("kernel ", kernel.name(), " needs ", bytes,
                                                        " bytes of shared memory, the device (",
                                                        name, ") has ", shared));
    }
  }
  return absl::OkStatus();
}

absl::Status LoadModules(const CudaDriver& driver, const ProgramFiles& files,
                         std::vector<CUmodule>* modules, std::vector<CUfunction>* functions) {
  functions->assign(files.program.kernels_size(), nullptr);
  for (int i = 0; i < files.program.kernels_size(); ++i) {
    const v1::Kernel& kernel = files.program.kernels(i);
    absl::Status loaded = LoadModule(driver, kernel, files.cubins[i], modules, &(*functions)[i]);
    if (!loaded.ok()) {
      return absl::Status(loaded.code(),
                          absl::StrCat("kernel ", kernel.name(), ": ", loaded.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace hackc::client
