// SPDX-License-Identifier: MIT
#include "client/runtime/guarded_memory.h"

#include <utility>

namespace hackc::client {
namespace {

// The zone behind begins at the very end; what follows keeps the allocation a multiple of 256.
int64_t Allocated(int64_t bytes) {
  return (bytes + 255) / 256 * 256 + 2 * GuardedMemory::kRedZoneBytes;
}

}  // namespace

absl::StatusOr<GuardedMemory> GuardedMemory::Allocate(const CudaDriver& driver, int64_t bytes,
                                                      std::string name) {
  GuardedMemory guarded;
  guarded.driver_ = &driver;
  guarded.bytes_ = bytes;
  HACKC_ASSIGN_OR_RETURN(guarded.memory_, DeviceMemory::Allocate(driver, Allocated(bytes), name));
  guarded.name_ = std::move(name);
  HACKC_RETURN_IF_ERROR(guarded.Poison());
  return guarded;
}

absl::Status GuardedMemory::Poison() {
  return driver_->Check(
      driver_->MemsetD8Async(memory_.address(), kPoison, Allocated(bytes_), nullptr),
      "cuMemsetD8Async");
}

absl::Status GuardedMemory::FillNumbers() {
  return driver_->Check(driver_->MemsetD8Async(address(), 0x3c, bytes_, nullptr),
                        "cuMemsetD8Async");
}

absl::StatusOr<std::string> GuardedMemory::Read() const {
  std::string bytes(bytes_, '\0');
  if (bytes_ == 0) return bytes;
  HACKC_RETURN_IF_ERROR(driver_->Check(
      driver_->MemcpyDeviceToHost(bytes.data(), address(), bytes.size()), "cuMemcpyDtoH"));
  return bytes;
}

absl::Status GuardedMemory::CheckRedZones() const {
  std::string zone(kRedZoneBytes, '\0');
  for (const bool behind : {false, true}) {
    const CUdeviceptr at = behind ? address() + bytes_ : memory_.address();
    HACKC_RETURN_IF_ERROR(
        driver_->Check(driver_->MemcpyDeviceToHost(zone.data(), at, zone.size()), "cuMemcpyDtoH"));
    const size_t hit = zone.find_first_not_of(static_cast<char>(kPoison));
    if (hit == std::string::npos) continue;
    return absl::OutOfRangeError(
        behind ? absl::StrCat(name_, ": written ", hit, " bytes behind its end")
               : absl::StrCat(name_, ": written ", kRedZoneBytes - hit, " bytes before its start"));
  }
  return absl::OkStatus();
}

}  // namespace hackc::client
