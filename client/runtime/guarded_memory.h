// SPDX-License-Identifier: MIT
// Device memory between two red zones, poisoned throughout: what was never written is NaN in every
// floating type, and what a kernel writes outside is found.
//
//   HACKC_ASSIGN_OR_RETURN(GuardedMemory y, GuardedMemory::Allocate(driver, bytes, "y"));
//   ... y.address() ...
//   HACKC_RETURN_IF_ERROR(y.CheckRedZones());  // "y: written 4 bytes behind its end"
//
// Must be used and destroyed with its context current. Thread safety: none.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "client/runtime/device_memory.h"

namespace hackc::client {

class GuardedMemory {
 public:
  static constexpr unsigned char kPoison = 0xff;
  static constexpr int64_t kRedZoneBytes = 4096;

  static absl::StatusOr<GuardedMemory> Allocate(const CudaDriver& driver, int64_t bytes,
                                                std::string name);
  absl::Status Poison();  // all of it again; asynchronous
  // Each byte between the red zones 0x3c, near 0.01 in float32 and bfloat16 and 1 in float16;
  // asynchronous.
  absl::Status FillNumbers();
  CUdeviceptr address() const { return memory_.address() + kRedZoneBytes; }
  int64_t bytes() const { return bytes_; }
  const std::string& name() const { return name_; }
  absl::StatusOr<std::string> Read() const;
  absl::Status CheckRedZones() const;

 private:
  const CudaDriver* driver_ = nullptr;
  DeviceMemory memory_;
  int64_t bytes_ = 0;
  std::string name_;
};

}  // namespace hackc::client
