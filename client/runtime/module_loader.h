// SPDX-License-Identifier: MIT
// Brings a program's cubins onto a device and compares what the driver says of them with the
// contract.
//
//   HACKC_RETURN_IF_ERROR(CheckDevice(driver, program, device));
//   HACKC_RETURN_IF_ERROR(LoadModules(driver, files, &modules, &functions));
//
// Must be called with the context current. Thread safety: pure functions of the driver's state.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/runtime/cuda_driver.h"
#include "client/runtime/program_files.h"

namespace hackc::client {

// Whether code for `arch` ("sm_90a") runs on compute capability major.minor: the suffix 'a' wants
// exactly it, 'f' and none want the same major and at least the minor.
bool ArchRunsOn(absl::string_view arch, int major, int minor);

// FAILED_PRECONDITION when the program's arch or shared memory does not fit the device.
absl::Status CheckDevice(const CudaDriver& driver, const v1::Program& program, CUdevice device);

// Modules loaded before a failure are in `modules` all the same; the caller unloads them.
absl::Status LoadModules(const CudaDriver& driver, const ProgramFiles& files,
                         std::vector<CUmodule>* modules, std::vector<CUfunction>* functions);

}  // namespace hackc::client
