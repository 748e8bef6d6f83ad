// SPDX-License-Identifier: MIT
// A piece of GPU memory that frees itself, from the driver or from an allocator of the caller's.
//
//   HACKC_ASSIGN_OR_RETURN(DeviceMemory slab,
//                          DeviceMemory::Allocate(driver, bytes, "prepared weights"));
//   HACKC_ASSIGN_OR_RETURN(
//       slab, DeviceMemory::Allocate(driver, bytes, "prepared weights", &allocator));
//
// Must be used and destroyed with its context current. Thread safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/runtime/cuda_driver.h"
#include "compiler/support/status_macros.h"

namespace hackc::client {

// Both are called with the device's context current, by the thread that is in a call of the
// runtime.
struct DeviceAllocator {
  std::function<CUdeviceptr(int64_t bytes)>
      allocate;  // aligned to 256 bytes; 0 when there is no room
  std::function<void(CUdeviceptr)> release;
};

class DeviceMemory {
 public:
  DeviceMemory() = default;
  static absl::StatusOr<DeviceMemory> Allocate(const CudaDriver& driver, int64_t bytes,
                                               absl::string_view what,
                                               const DeviceAllocator* allocator = nullptr) {
    if (bytes < 0) {
      return absl::InvalidArgumentError(absl::StrCat(what, ": a size of ", bytes, " bytes"));
    }
    DeviceMemory memory;
    // The driver refuses 0 bytes; an empty tensor still needs an address.
    const int64_t room = bytes > 0 ? bytes : 1;
    if (allocator != nullptr && allocator->allocate) {
      memory.address_ = allocator->allocate(room);
      if (memory.address_ == 0) {
        return absl::ResourceExhaustedError(
            absl::StrCat("the allocator has no ", bytes, " bytes for ", what));
      }
      memory.allocator_ = allocator;
      if (memory.address_ % 256 != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("the allocator's memory for ", what, " is not aligned to 256 bytes"));
      }
      return memory;
    }
    HACKC_RETURN_IF_ERROR(driver.Check(driver.MemAlloc(&memory.address_, room),
                                       absl::StrCat("cuMemAlloc of ", bytes, " bytes for ", what)));
    memory.driver_ = &driver;
    return memory;
  }
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(allocator_, other.allocator_);
    std::swap(address_, other.address_);
    return *this;
  }
  ~DeviceMemory() {
    if (driver_ != nullptr) driver_->MemFree(address_);
    if (allocator_ != nullptr) allocator_->release(address_);
  }

  CUdeviceptr address() const { return address_; }

 private:
  // At most one of the two: where the memory goes back to.
  const CudaDriver* driver_ = nullptr;
  const DeviceAllocator* allocator_ = nullptr;
  CUdeviceptr address_ = 0;
};

}  // namespace hackc::client
