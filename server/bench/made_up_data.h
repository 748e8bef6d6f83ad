// SPDX-License-Identifier: MIT
// Inputs of a measurement: floats uniform in -1..1, the same for the same seed; integers below a bound, from the
// largest down: long sequences, and no page twice.
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
