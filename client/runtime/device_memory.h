// SPDX-License-Identifier: MIT
// A piece of GPU memory that frees itself.
//
//   HACKC_ASSIGN_OR_RETURN(DeviceMemory slab, DeviceMemory::Allocate(driver, bytes, "prepared weights"));
//
// Must be used and destroyed with its context current. Thread safety: none.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/runtime/cuda_driver.h"
#include "compiler/support/status_macros.h"

namespace hackc::client {

class DeviceMemory {
 public:
  DeviceMemory() = default;
  static absl::StatusOr<DeviceMemory> Allocate(const CudaDriver& driver, int64_t bytes,
                                               absl::string_view what) {
    DeviceMemory memory;
    // The driver refuses 0 bytes; an empty tensor still needs an address.
    HACKC_RETURN_IF_ERROR(driver.Check(driver.MemAlloc(&memory.address_, bytes > 0 ? bytes : 1),
                                       absl::StrCat("cuMemAlloc of ", bytes, " bytes for ", what)));
    memory.driver_ = &driver;
    return memory;
  }
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(address_, other.address_);
    return *this;
  }
  ~DeviceMemory() {
    if (driver_ != nullptr) driver_->MemFree(address_);
  }

  CUdeviceptr address() const { return address_; }

 private:
  const CudaDriver* driver_ = nullptr;
  CUdeviceptr address_ = 0;
};

}  // namespace hackc::client
