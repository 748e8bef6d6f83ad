// SPDX-License-Identifier: MIT
// From a request to what the runtime loads.
//
//   HACKC_ASSIGN_OR_RETURN(request.mutable_target()->..., ArchOf(driver, 0));
//   HACKC_ASSIGN_OR_RETURN(ProgramFiles files, CompileProgram(*compiler, request, nullptr));
//
// Thread safety: as CompilerApi says.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/compiler_api.h"
#include "client/runtime/cuda_driver.h"
#include "client/runtime/program_files.h"

namespace hackc::client {

// The target of a CUDA device: "sm_90a".
absl::StatusOr<std::string> ArchOf(const CudaDriver& driver, int ordinal);

// Compiles with cubins; `on_event` may be null.
absl::StatusOr<ProgramFiles> CompileProgram(CompilerApi& compiler, v1::CompileRequest request,
                                            const CompilerApi::EventCallback& on_event);

}  // namespace hackc::client
