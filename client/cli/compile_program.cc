// SPDX-License-Identifier: MIT
#include "client/cli/compile_program.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/render.h"
#include "compiler/support/status_macros.h"

namespace hackc::client {

absl::StatusOr<std::string> ArchOf(const CudaDriver& driver, int ordinal) {
  CUdevice device = 0;
  int major = 0, minor = 0;
  HACKC_RETURN_IF_ERROR(driver.Check(driver.DeviceGet(&device, ordinal),
                                     absl::StrCat("cuDeviceGet of device ", ordinal)));
  HACKC_RETURN_IF_ERROR(driver.Check(
      driver.DeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
      "cuDeviceGetAttribute"));
  HACKC_RETURN_IF_ERROR(driver.Check(
      driver.DeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device),
      "cuDeviceGetAttribute"));
  return absl::StrCat("sm_", major, minor, major >= 9 ? "a" : "");
}

absl::StatusOr<ProgramFiles> CompileProgram(CompilerApi& compiler, v1::CompileRequest request,
                                            const CompilerApi::EventCallback& on_event) {
  request.set_with_cubins(true);
  CompileResult result;
  HACKC_RETURN_IF_ERROR(compiler.Compile(request, [&](const v1::CompileEvent& event) {
    if (on_event) on_event(event);
    result.Add(event);
  }));
  result.Finish();
  std::map<std::string, const std::string*> cubins;
  for (const v1::KernelReady& ready : result.kernels) {
    cubins[ready.kernel().digest()] = &ready.cubin();
  }
  ProgramFiles files;
  files.program = result.program.program();
  for (const v1::Kernel& kernel : files.program.kernels()) {
    auto cubin = cubins.find(kernel.digest());
    if (cubin == cubins.end()) {
      return absl::InternalError(absl::StrCat("the answer has no cubin of kernel ", kernel.name()));
    }
    files.cubins.push_back(*cubin->second);
  }
  return files;
}

}  // namespace hackc::client
