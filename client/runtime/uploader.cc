// SPDX-License-Identifier: MIT
#include "client/runtime/uploader.h"

#include <algorithm>
#include <cstring>
#include <future>
#include <new>
#include <thread>
#include <vector>

#include "client/runtime/float_convert.h"
#include "client/runtime/program_check.h"
#include "compiler/support/status_macros.h"

namespace hackc::client {
namespace {

// Below these sizes a buffer or a thread costs more than it saves.
constexpr int64_t kSmallBytes = 256 << 10;
constexpr int64_t kSliceBytes = 1 << 20;
constexpr int64_t kMostThreads = 8;

// The pair of dtypes was checked with a count of 0.
void Convert(v1::DType from, const char* source, v1::DType to, char* target, int64_t count) {
  if (from == to) {
    std::memcpy(target, source, count * ElementBytes(to));
  } else {
    ConvertFloats(from, source, to, target, count).IgnoreError();
  }
}

void ConvertInParallel(v1::DType from, const char* source, v1::DType to, char* target,
                       int64_t count) {
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const int64_t slices = std::clamp<int64_t>(count * ElementBytes(from) / kSliceBytes, 1,
                                             std::min(cores, kMostThreads));
  std::vector<std::future<void>> others;
  for (int64_t i = 0; i < slices; ++i) {
    const int64_t begin = count * i / slices, end = count * (i + 1) / slices;
    auto work = [=] {
      Convert(from, source + begin * ElementBytes(from), to, target + begin * ElementBytes(to),
              end - begin);
    };
    if (i + 1 == slices) {
      work();
    } else {
      others.push_back(std::async(work));  // on this thread, later, where no other is to be had
    }
  }
  for (std::future<void>& other : others) other.get();
}

}  // namespace

Uploader::~Uploader() {
  for (Buffer& buffer : buffers_) {
    if (buffer.pinned) {
      driver_.MemFreeHost(buffer.data);
    } else {
      delete[] buffer.data;
    }
  }
}

absl::Status Uploader::Allocate() {
  for (Buffer& buffer : buffers_) {
    if (buffer.data != nullptr) continue;
    void* pinned = nullptr;
    // Pinned memory may be limited; without it the driver copies twice, and all works.
    buffer.pinned = driver_.MemHostAlloc(&pinned, kChunkBytes, 0) == CUDA_SUCCESS;
    buffer.data = buffer.pinned ? static_cast<char*>(pinned) : new (std::nothrow) char[kChunkBytes];
    if (buffer.data == nullptr) {
      return absl::ResourceExhaustedError("no host memory for the upload of weights");
    }
  }
  return absl::OkStatus();
}

absl::Status Uploader::Copy(CUdeviceptr target, v1::DType to, const void* source, v1::DType from,
                            int64_t count) {
  if (from != to) HACKC_RETURN_IF_ERROR(ConvertFloats(from, source, to, nullptr, 0));
  if (count == 0) return absl::OkStatus();
  const char* in = static_cast<const char*>(source);
  const int64_t width = ElementBytes(to), wider = std::max(width, ElementBytes(from));
  if (count * wider <= kSmallBytes) {
    std::vector<char> converted(from == to ? 0 : count * width);
    if (from != to) Convert(from, in, to, converted.data(), count);
    return driver_.Check(
        driver_.MemcpyHostToDevice(target, from == to ? in : converted.data(), count * width),
        "cuMemcpyHtoD");
  }
  HACKC_RETURN_IF_ERROR(Allocate());
  const int64_t chunk = kChunkBytes / wider;
  auto fill = [&](int64_t begin, char* buffer) {
    ConvertInParallel(from, in + begin * ElementBytes(from), to, buffer,
                      std::min(chunk, count - begin));
  };
  std::future<void> filled = std::async(fill, 0, buffers_[0].data);
  for (int64_t begin = 0, turn = 0; begin < count; begin += chunk, turn ^= 1) {
    filled.get();
    if (begin + chunk < count) filled = std::async(fill, begin + chunk, buffers_[turn ^ 1].data);
    HACKC_RETURN_IF_ERROR(driver_.Check(
        driver_.MemcpyHostToDevice(target + static_cast<CUdeviceptr>(begin * width),
                                   buffers_[turn].data, std::min(chunk, count - begin) * width),
        "cuMemcpyHtoD"));
  }
  return absl::OkStatus();
}

}  // namespace hackc::client
