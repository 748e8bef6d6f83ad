// SPDX-License-Identifier: MIT
// The GPU as a bench process sees it: the driver, a context that stays current, and the few
// functions that only measurements need.
//
//   HACKC_ASSIGN_OR_RETURN(std::unique_ptr<BenchDevice> device, BenchDevice::Open(0));
//   HACKC_ASSIGN_OR_RETURN(double us,
//                          device->Microseconds([&] { return graph->Launch(nullptr); }));
//
// All work goes to the default stream. Thread safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/runtime/cuda_driver.h"
#include "client/runtime/device_memory.h"

namespace hackc::server {

class BenchDevice {
 public:
  static absl::StatusOr<std::unique_ptr<BenchDevice>> Open(int index);
  ~BenchDevice();
  BenchDevice(const BenchDevice&) = delete;
  BenchDevice& operator=(const BenchDevice&) = delete;

  const client::CudaDriver& driver() const { return driver_; }
  int index() const { return index_; }
  const std::string& name() const { return name_; }
  int64_t l2_bytes() const { return l2_bytes_; }

  absl::Status Synchronize() const;
  absl::Status Copy(CUdeviceptr to, CUdeviceptr from, int64_t bytes) const;
  // GPU time of what `work` launches, by events round it. Waits for it.
  absl::StatusOr<double> Microseconds(const std::function<absl::Status()>& work) const;
  // Bytes read and written in a second by a copy that is too large for the cache: the median of
  // several, tried again for up to 0.6 s while it is below what was reached before. Right after
  // products that take all the power there is, an H200 copies 10 % slower, for some 0.3 s.
  absl::StatusOr<double> CopyRate();

 private:
  absl::Status AllocateCopied();
  absl::StatusOr<double> OneCopyRate() const;
  // cuda.h names other versions of these in other toolkits; these are in every driver since CUDA 4.
  struct Functions {
    CUresult (*event_create)(CUevent*, unsigned) = nullptr;
    CUresult (*event_record)(CUevent, CUstream) = nullptr;
    CUresult (*event_synchronize)(CUevent) = nullptr;
    CUresult (*event_elapsed)(float*, CUevent, CUevent) = nullptr;
    CUresult (*event_destroy)(CUevent) = nullptr;
    CUresult (*copy)(CUdeviceptr, CUdeviceptr, size_t) = nullptr;
  };
  BenchDevice(const client::CudaDriver& driver, int index) : driver_(driver), index_(index) {}
  absl::Status Start();

  const client::CudaDriver& driver_;
  const int index_;
  std::string name_;
  int64_t l2_bytes_ = 0;
  Functions functions_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  std::optional<client::ScopedContext> current_;
  CUevent events_[2] = {nullptr, nullptr};
  // Of CopyRate, taken before all else where there is room, and kept: on an H200 buffers where
  // memory had been freed were copied at 3.55 TB/s, others at 4.03, as if something else ran.
  client::DeviceMemory copied_[2];
  int64_t copied_bytes_ = 0;
  double best_rate_ = 0;
};

}  // namespace hackc::server
