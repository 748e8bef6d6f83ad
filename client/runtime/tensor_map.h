// SPDX-License-Identifier: MIT
// Builds the CUtensorMap that a kernel's bulk copies read from, as the contract's recipe says.
//
//   HACKC_RETURN_IF_ERROR(EncodeTensorMap(driver, param.tensor_map(), base, symbols, &map));
//
// Thread safety: pure function.
#pragma once

#include "absl/status/status.h"
#include "client/runtime/cuda_driver.h"
#include "client/runtime/dim_expr.h"

namespace hackc::client {

absl::Status EncodeTensorMap(const CudaDriver& driver, const v1::TensorMapRecipe& recipe,
                             CUdeviceptr base, const SymbolValues& symbols, CUtensorMap* map);

}  // namespace hackc::client
