// SPDX-License-Identifier: MIT
// A golden model on this machine's GPU: compiled in this process, loaded by the client's runtime
// with the weights of its folder, and compared with the stored truth. Every prefix of the prompt is
// a call of its own, so that each sequence length is run; then the greedy tokens go through
// `decode`.
//
//   HACKC_ASSIGN_OR_RETURN(const client::CudaDriver* driver, client::LoadCudaDriver());
//   Outcome outcome = CheckOnGpu(*driver, folder, model, CheckedDType::kBFloat16);
//
// Thread safety: one call at a time.
#pragma once

#include <filesystem>

#include "client/runtime/cuda_driver.h"
#include "tools/golden/check.h"

namespace hackc::golden {

Outcome CheckOnGpu(const client::CudaDriver& driver, const std::filesystem::path& folder,
                   const Model& model, CheckedDType dtype);

}  // namespace hackc::golden
