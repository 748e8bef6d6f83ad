// SPDX-License-Identifier: MIT
// Host memory to the GPU as fast as the bus takes it: several threads read, and convert on the way,
// into one of two pinned buffers while the other is copied. Reading a mapped file this way also
// reads the disk at several places.
//
//   Uploader uploader(driver);
//   HACKC_RETURN_IF_ERROR(
//       uploader.Copy(address, v1::DTYPE_BFLOAT16, data, v1::DTYPE_FLOAT32, count));
//
// Host memory beside the source: 32 MiB, taken with the first large tensor. Must be used and
// destroyed with the context current. Thread safety: none.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "client/runtime/cuda_driver.h"
#include "hackc/v1/model.pb.h"

namespace hackc::client {

class Uploader {
 public:
  static constexpr int64_t kChunkBytes = 16 << 20;

  explicit Uploader(const CudaDriver& driver) : driver_(driver) {}
  ~Uploader();
  Uploader(const Uploader&) = delete;
  Uploader& operator=(const Uploader&) = delete;

  // Returns when all is on the GPU. INVALID_ARGUMENT for two dtypes that differ and are not both
  // floating.
  absl::Status Copy(CUdeviceptr target, v1::DType to, const void* source, v1::DType from,
                    int64_t count);

 private:
  struct Buffer {
    char* data = nullptr;
    bool pinned = false;
  };
  absl::Status Allocate();

  const CudaDriver& driver_;
  Buffer buffers_[2];
};

}  // namespace hackc::client
