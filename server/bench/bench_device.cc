// SPDX-License-Identifier: MIT
#include "server/bench/bench_device.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"

namespace hackc::server {
namespace {

using client::DeviceMemory;

constexpr int kCopies = 9;  // of which the median counts
constexpr int kRateTries = 12;
constexpr std::chrono::milliseconds kBetweenTries{50};
constexpr double kReached = 0.98;

template <typename Function>
absl::Status Find(const char* symbol, Function* function) {
  *function = reinterpret_cast<Function>(client::FindCudaFunction(symbol));
  if (*function != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the CUDA driver lacks ", symbol));
}

}  // namespace

absl::StatusOr<std::unique_ptr<BenchDevice>> BenchDevice::Open(int index) {
  HACKC_ASSIGN_OR_RETURN(const client::CudaDriver* driver, client::LoadCudaDriver());
  std::unique_ptr<BenchDevice> device(new BenchDevice(*driver, index));
  HACKC_RETURN_IF_ERROR(device->Start());
  return device;
}

absl::Status BenchDevice::Start() {
  HACKC_RETURN_IF_ERROR(Find("cuEventCreate", &functions_.event_create));
  HACKC_RETURN_IF_ERROR(Find("cuEventRecord", &functions_.event_record));
  HACKC_RETURN_IF_ERROR(Find("cuEventSynchronize", &functions_.event_synchronize));
  HACKC_RETURN_IF_ERROR(Find("cuEventElapsedTime", &functions_.event_elapsed));
  HACKC_RETURN_IF_ERROR(Find("cuEventDestroy_v2", &functions_.event_destroy));
  HACKC_RETURN_IF_ERROR(Find("cuMemcpyDtoD_v2", &functions_.copy));
  HACKC_RETURN_IF_ERROR(driver_.Check(driver_.DeviceGet(&device_, index_), "cuDeviceGet"));
  char name[256] = "";
  HACKC_RETURN_IF_ERROR(
      driver_.Check(driver_.DeviceGetName(name, sizeof(name) - 1, device_), "cuDeviceGetName"));
  name_ = name;
  int l2_bytes = 0;
  HACKC_RETURN_IF_ERROR(driver_.Check(
      driver_.DeviceGetAttribute(&l2_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device_),
      "cuDeviceGetAttribute"));
  l2_bytes_ = l2_bytes;
  HACKC_RETURN_IF_ERROR(
      driver_.Check(driver_.PrimaryContextRetain(&context_, device_), "cuDevicePrimaryCtxRetain"));
  current_.emplace(driver_, context_);
  HACKC_RETURN_IF_ERROR(current_->status());
  for (CUevent& event : events_) {
    HACKC_RETURN_IF_ERROR(driver_.Check(functions_.event_create(&event, 0), "cuEventCreate"));
  }
  copied_bytes_ = std::max<int64_t>(4 * l2_bytes_, 1 << 20);
  AllocateCopied().IgnoreError();  // kernels can be checked without; CopyRate tries again
  return absl::OkStatus();
}

BenchDevice::~BenchDevice() {
  for (CUevent event : events_) {
    if (event != nullptr) functions_.event_destroy(event);
  }
  for (DeviceMemory& memory : copied_) memory = {};
  current_.reset();
  if (context_ != nullptr) driver_.PrimaryContextRelease(device_);
}

absl::Status BenchDevice::Synchronize() const {
  return driver_.Check(driver_.StreamSynchronize(nullptr), "cuStreamSynchronize");
}

absl::Status BenchDevice::Copy(CUdeviceptr to, CUdeviceptr from, int64_t bytes) const {
  return driver_.Check(functions_.copy(to, from, bytes), "cuMemcpyDtoD");
}

absl::StatusOr<double> BenchDevice::Microseconds(const std::function<absl::Status()>& work) const {
  HACKC_RETURN_IF_ERROR(
      driver_.Check(functions_.event_record(events_[0], nullptr), "cuEventRecord"));
  HACKC_RETURN_IF_ERROR(work());
  HACKC_RETURN_IF_ERROR(
      driver_.Check(functions_.event_record(events_[1], nullptr), "cuEventRecord"));
  HACKC_RETURN_IF_ERROR(
      driver_.Check(functions_.event_synchronize(events_[1]), "cuEventSynchronize"));
  float milliseconds = 0;
  HACKC_RETURN_IF_ERROR(driver_.Check(
      functions_.event_elapsed(&milliseconds, events_[0], events_[1]), "cuEventElapsedTime"));
  return 1e3 * milliseconds;
}

absl::Status BenchDevice::AllocateCopied() {
  for (DeviceMemory& memory : copied_) {
    if (memory.address() != 0) continue;
    HACKC_ASSIGN_OR_RETURN(memory, DeviceMemory::Allocate(driver_, copied_bytes_, "a copy"));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> BenchDevice::OneCopyRate() const {
  const auto copy = [&] { return Copy(copied_[1].address(), copied_[0].address(), copied_bytes_); };
  std::vector<double> times;
  for (int i = -2; i < kCopies; ++i) {  // two warm up
    HACKC_ASSIGN_OR_RETURN(double us, Microseconds(copy));
    if (i >= 0) times.push_back(us);
  }
  std::nth_element(times.begin(), times.begin() + kCopies / 2, times.end());
  const double median = times[kCopies / 2];
  if (median <= 0) return absl::InternalError("a copy on the device took no time");
  return 2.0 * copied_bytes_ / (median * 1e-6);
}

absl::StatusOr<double> BenchDevice::CopyRate() {
  HACKC_RETURN_IF_ERROR(AllocateCopied());
  const double known = best_rate_;
  double best = 0;
  for (int i = 0; i < kRateTries; ++i) {
    if (i > 0) std::this_thread::sleep_for(kBetweenTries);
    HACKC_ASSIGN_OR_RETURN(const double rate, OneCopyRate());
    best = std::max(best, rate);
    if (known > 0 && best > kReached * known) break;
  }
  best_rate_ = std::max(known, best);
  return best;
}

}  // namespace hackc::server
