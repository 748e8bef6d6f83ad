// SPDX-License-Identifier: MIT
// One kernel on a GPU: red zones round every buffer, outputs poisoned first, inputs made up from a
// seed; what it writes is held against the reference's result at each shape to check, and only then
// is it timed, in the same call or in another one (BenchCall.part).
//
//   v1::worker::BenchResult result = KernelBench(device, call).Run();
//
// A time is that of one launch among others in a CUDA graph, on buffers that take turns so that
// none lies in the cache from the launch before. The median of several samples counts; where they
// spread by more than 5 % the measurement is repeated, and the quietest is kept.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/runtime/guarded_memory.h"
#include "client/runtime/runtime.h"
#include "hackc/v1/worker.pb.h"
#include "server/bench/bench_device.h"

namespace hackc::server {

class KernelBench {
 public:
  KernelBench(const BenchDevice& device, const v1::worker::BenchCall& call)
      : device_(device), call_(call) {}

  v1::worker::BenchResult Run();

 private:
  using Shape = v1::worker::BenchCall::Shape;
  struct Samples {
    double median_us = 0;
    double spread = 0;
    uint32_t count = 0;
  };
  struct Tensor {
    client::GuardedMemory memory;
    int argument = 0;
  };

  absl::Status RunAll();
  absl::Status Check(const Shape& shape);
  absl::Status CheckTimed(const Shape& shape);
  absl::Status RunAlone(const Shape& shape);  // without its reference: between red zones
  absl::Status Time(const Shape& shape);
  void TakeSymbols(const Shape& shape);
  // Loads the program and makes its tensors, at the symbols taken. Set -1 is the reference's.
  absl::Status SetUp(int first_set, int sets, int launches);
  absl::Status Fill(const Tensor& tensor);
  absl::Status FillLengths(const Tensor& tensor, int64_t length);
  absl::Status RunEntry(const std::string& entry);
  absl::Status CheckRedZones();
  absl::StatusOr<int64_t> SetBytes() const;
  absl::StatusOr<client::Call> CallOf(const std::string& entry);
  absl::StatusOr<Samples> Sample(client::RuntimeGraph& graph, int launches) const;
  absl::Status Blame(v1::worker::Fault fault, const std::string& detail);

  const BenchDevice& device_;
  const v1::worker::BenchCall& call_;
  v1::worker::BenchResult result_;
  client::SymbolValues symbols_;
  bool timing_ = false;  // else checking
  std::string where_;    // "at batch 1, seq 37"
  std::unique_ptr<client::Runtime> runtime_;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace hackc::server
