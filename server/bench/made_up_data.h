// SPDX-License-Identifier: MIT
// Inputs of a measurement: floats uniform in -1..1; integers from 0 to below a bound, all of them
// before one comes again, so that tables name each page once. The same for the same seed.
//
//   std::string bytes = MadeUpData(v1::DTYPE_BFLOAT16, 4096, /*below=*/0, /*seed=*/1);
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "hackc/v1/model.pb.h"

namespace hackc::server {

std::string MadeUpData(v1::DType dtype, int64_t elements, int64_t below, uint64_t seed);

}  // namespace hackc::server
