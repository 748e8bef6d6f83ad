// SPDX-License-Identifier: MIT
#include "server/bench/kernel_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/support/status_macros.h"
#include "server/bench/compare.h"
#include "server/bench/made_up_data.h"
#include "server/bench/one_kernel.h"

namespace hackc::server {
namespace {

using client::GuardedMemory;
using client::Runtime;
using v1::worker::Fault;

// Made-up data repeats after this many elements: a prime, so that no stride of a kernel falls in
// step with it.
constexpr int64_t kPeriod = 1'048'583;
constexpr double kSampleMicroseconds =
    500;                       // at least, so that the events' own jitter is below a percent
constexpr int kLaunches = 48;  // of short kernels in a graph
constexpr int kMinSamples = 9, kMaxSamples = 41;
constexpr std::chrono::milliseconds kSampling{
    300};  // enough of them; at least kMinSamples all the same
constexpr std::chrono::milliseconds kWarmUp{20};
constexpr int kRounds = 3;
constexpr double kDisturbed = 0.05;  // a quiet GPU spreads by one or two percent
// A reference is slow: one thread for each output and no reuse. Small shapes are checked always,
// timed ones up to this.
constexpr int64_t kCheckedOperations = 2'000'000'000;
// Formulas of what a kernel moves count each element once and bounds of caches are soft: below half
// of what the part can do at best, something was not measured.
constexpr double kImpossible = 0.5;

}  // namespace

v1::worker::BenchResult KernelBench::Run() {
  const absl::Status status = RunAll();
  if (!status.ok() && result_.fault() == v1::worker::NONE) {
    // Memory is short for reasons of its own; all else is the driver refusing or ending the kernel.
    result_.set_fault(absl::IsResourceExhausted(status) ? v1::worker::NOT_TIMED
                                                        : v1::worker::CUDA_ERROR);
    result_.set_detail(absl::StrCat(status.message(), where_));
  }
  return std::move(result_);
}

absl::Status KernelBench::Blame(Fault fault, const std::string& detail) {
  result_.set_fault(fault);
  result_.set_detail(detail + where_);
  return absl::FailedPreconditionError(detail);
}

absl::Status KernelBench::RunAll() {
  if (call_.part() != v1::worker::BenchCall::TIME) {
    for (const Shape& shape : call_.checked()) HACKC_RETURN_IF_ERROR(Check(shape));
    for (const Shape& shape : call_.timed()) {
      const absl::Status status = CheckTimed(shape);
      // No memory for so much at once: its time will say so, and smaller shapes are right.
      if (!absl::IsResourceExhausted(status)) HACKC_RETURN_IF_ERROR(status);
    }
  }
  if (call_.part() != v1::worker::BenchCall::CHECK) {
    for (const Shape& shape : call_.timed()) HACKC_RETURN_IF_ERROR(Time(shape));
  }
  return absl::OkStatus();
}

absl::Status KernelBench::CheckTimed(const Shape& shape) {
  TakeSymbols(shape);
  HACKC_ASSIGN_OR_RETURN(const int64_t operations,
                         client::Evaluate(call_.kernel().operations(), symbols_));
  return operations <= kCheckedOperations ? Check(shape) : RunAlone(shape);
}

absl::Status KernelBench::RunAlone(const Shape& shape) {
  timing_ = true;
  TakeSymbols(shape);
  HACKC_RETURN_IF_ERROR(SetUp(0, 1, 1));
  HACKC_RETURN_IF_ERROR(RunEntry("candidate"));
  return CheckRedZones();
}

void KernelBench::TakeSymbols(const Shape& shape) {
  symbols_.clear();
  std::vector<std::string> values;
  for (const v1::Symbol& symbol : call_.kernel().valid()) {
    const auto found = shape.symbols().find(symbol.name());
    symbols_[symbol.name()] = found == shape.symbols().end() ? symbol.min() : found->second;
    values.push_back(absl::StrCat(symbol.name(), " ", symbols_[symbol.name()]));
  }
  where_ = values.empty() ? "" : absl::StrCat(" (at ", absl::StrJoin(values, ", "), ")");
}

absl::Status KernelBench::SetUp(int first_set, int sets, int launches) {
  tensors_.clear();
  runtime_ = nullptr;
  client::ProgramFiles files{OneKernelProgram(call_, sets, launches),
                             {call_.cubin(), call_.reference_cubin()}};
  HACKC_ASSIGN_OR_RETURN(runtime_,
                         Runtime::Load(device_.driver(), std::move(files), device_.index()));
  HACKC_RETURN_IF_ERROR(runtime_->Prepare(nullptr));
  for (int set = first_set; set < sets; ++set) {
    for (int a = 0; a < call_.uses().buffers_size(); ++a) {
      const std::string name = TensorOf(call_, set, a);
      if (tensors_.count(name)) continue;
      int64_t bytes = client::ElementBytes(call_.uses().buffers(a).dtype());
      for (const v1::DimExpr& formula : call_.uses().buffers(a).shape()) {
        HACKC_ASSIGN_OR_RETURN(const int64_t extent, client::Evaluate(formula, symbols_));
        bytes *= extent;
      }
      HACKC_ASSIGN_OR_RETURN(GuardedMemory memory,
                             GuardedMemory::Allocate(device_.driver(), bytes, name));
      const Tensor& tensor = tensors_[name] = Tensor{std::move(memory), a};
      if (!call_.uses().buffers(a).read() || bytes == 0) continue;
      if (set > 0) {
        HACKC_RETURN_IF_ERROR(device_.Copy(
            tensor.memory.address(), tensors_.at(TensorOf(call_, 0, a)).memory.address(), bytes));
      } else {
        HACKC_RETURN_IF_ERROR(Fill(tensor));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status KernelBench::Fill(const Tensor& tensor) {
  const v1::worker::BufferUse& use = call_.uses().buffers(tensor.argument);
  const int64_t total = tensor.memory.bytes();
  // Integers that index nothing are lengths of sequences in the cache, which kernels clamp to
  // `past`: checks take all of them, times the longest.
  const auto past = symbols_.find("past");
  int64_t below = past == symbols_.end() ? 1 : past->second + 1;
  if (use.has_below()) {
    HACKC_ASSIGN_OR_RETURN(below, client::Evaluate(use.below(), symbols_));
  } else if (timing_ && use.dtype() == v1::DTYPE_INT32) {
    return FillLengths(tensor, below - 1);
  }
  const int64_t width = client::ElementBytes(use.dtype());
  // The seed is the argument's: the candidate and the reference get the same.
  const std::string data =
      MadeUpData(use.dtype(), std::min(total / width, kPeriod), below, tensor.argument + 1);
  const CUdeviceptr at = tensor.memory.address();
  const client::CudaDriver& driver = device_.driver();
  HACKC_RETURN_IF_ERROR(
      driver.Check(driver.MemcpyHostToDevice(at, data.data(), data.size()), "cuMemcpyHtoD"));
  for (int64_t done = data.size(); done < total;) {
    const int64_t more = std::min(done, total - done);
    HACKC_RETURN_IF_ERROR(device_.Copy(at + done, at, more));
    done += more;
  }
  return absl::OkStatus();
}

absl::Status KernelBench::FillLengths(const Tensor& tensor, int64_t length) {
  const std::vector<int32_t> lengths(tensor.memory.bytes() / sizeof(int32_t),
                                     static_cast<int32_t>(length));
  return device_.driver().Check(device_.driver().MemcpyHostToDevice(
                                    tensor.memory.address(), lengths.data(), tensor.memory.bytes()),
                                "cuMemcpyHtoD");
}

absl::StatusOr<client::Call> KernelBench::CallOf(const std::string& entry) {
  client::Call call;
  call.entry = entry;
  call.symbols = symbols_;
  HACKC_ASSIGN_OR_RETURN(const std::vector<client::TensorInfo> infos,
                         runtime_->Tensors(entry, symbols_));
  for (const client::TensorInfo& info : infos) {
    call.tensors[info.name] = {tensors_.at(info.name).memory.address(), info.bytes};
  }
  return call;
}

absl::Status KernelBench::RunEntry(const std::string& entry) {
  HACKC_ASSIGN_OR_RETURN(const client::Call call, CallOf(entry));
  HACKC_RETURN_IF_ERROR(runtime_->Run(call, nullptr));
  return device_.Synchronize();
}

absl::Status KernelBench::CheckRedZones() {
  for (const auto& [name, tensor] : tensors_) {
    const absl::Status status = tensor.memory.CheckRedZones();
    if (absl::IsOutOfRange(status))
      return Blame(v1::worker::RED_ZONE, std::string(status.message()));
    HACKC_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

absl::Status KernelBench::Check(const Shape& shape) {
  timing_ = false;
  TakeSymbols(shape);
  HACKC_RETURN_IF_ERROR(SetUp(-1, 1, 1));
  // The reference first: what the candidate breaks must not reach it.
  HACKC_RETURN_IF_ERROR(RunEntry("reference"));
  HACKC_RETURN_IF_ERROR(RunEntry("candidate"));
  HACKC_RETURN_IF_ERROR(CheckRedZones());
  const double allowed = AllowedError(call_.uses().coarsest(), call_.uses().longest_reduction());
  for (int a = 0; a < call_.uses().buffers_size(); ++a) {
    const v1::worker::BufferUse& use = call_.uses().buffers(a);
    if (!use.written()) continue;
    const std::string name = TensorOf(call_, 0, a);
    HACKC_ASSIGN_OR_RETURN(const std::string actual, tensors_.at(name).memory.Read());
    HACKC_ASSIGN_OR_RETURN(const std::string expected,
                           tensors_.at(TensorOf(call_, -1, a)).memory.Read());
    int64_t row = 1;
    if (use.shape_size() > 0) {
      HACKC_ASSIGN_OR_RETURN(row, client::Evaluate(use.shape(use.shape_size() - 1), symbols_));
    }
    const std::string wrong = Difference(use.dtype(), actual, expected, row, allowed);
    if (!wrong.empty()) return Blame(v1::worker::WRONG_RESULT, name + wrong);
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> KernelBench::SetBytes() const {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors_) bytes += tensor.memory.bytes();
  return bytes;
}

absl::Status KernelBench::Time(const Shape& shape) {
  HACKC_RETURN_IF_ERROR(RunAlone(shape));
  HACKC_ASSIGN_OR_RETURN(const int64_t set_bytes, SetBytes());
  HACKC_ASSIGN_OR_RETURN(const client::Call once, CallOf("candidate"));
  HACKC_ASSIGN_OR_RETURN(const double first_us,
                         device_.Microseconds([&] { return runtime_->Run(once, nullptr); }));
  // When a buffer's turn comes again, at most a sixteenth of what was read since can still be in
  // the cache. With four times the cache an H200 read 136 MB 10 % faster than its memory is.
  const int64_t wanted = 16 * device_.l2_bytes();
  const int sets = static_cast<int>(
      std::clamp<int64_t>(wanted / std::max<int64_t>(set_bytes, 1) + 1, 1, kLaunches));
  const int launches =
      sets * std::max(1, static_cast<int>(std::min<double>(kLaunches, 2 * kSampleMicroseconds /
                                                                          std::max(first_us, 1.0)) /
                                          sets));
  HACKC_RETURN_IF_ERROR(SetUp(0, sets, launches));
  HACKC_ASSIGN_OR_RETURN(const client::Call call, CallOf("timed"));
  HACKC_ASSIGN_OR_RETURN(const std::unique_ptr<client::RuntimeGraph> graph,
                         runtime_->Capture(call));
  Samples best{0, std::numeric_limits<double>::infinity(), 0};
  for (int round = 0; round < kRounds && best.spread > kDisturbed; ++round) {
    HACKC_ASSIGN_OR_RETURN(const Samples samples, Sample(*graph, launches));
    if (!(samples.median_us > 0)) {
      return Blame(v1::worker::IMPOSSIBLE_TIME, "the launches took no time");
    }
    if (samples.spread < best.spread) best = samples;
  }
  HACKC_RETURN_IF_ERROR(CheckRedZones());

  v1::worker::BenchTime time;
  *time.mutable_shape() = shape;
  HACKC_ASSIGN_OR_RETURN(const int64_t bytes,
                         client::Evaluate(call_.kernel().bytes_moved(), symbols_));
  HACKC_ASSIGN_OR_RETURN(const int64_t operations,
                         client::Evaluate(call_.kernel().operations(), symbols_));
  const double at_best_us =
      1e6 * std::max(bytes / call_.bytes_per_second(), operations / call_.operations_per_second());
  if (best.median_us < kImpossible * at_best_us) {
    return Blame(v1::worker::IMPOSSIBLE_TIME,
                 absl::StrCat(best.median_us, " us, the hardware needs ", at_best_us, " us"));
  }
  time.set_median_us(best.median_us);
  time.set_spread(best.spread);
  time.set_disturbed(best.spread > kDisturbed);
  time.set_samples(best.count);
  time.set_bytes(bytes);
  time.set_operations(operations);
  *result_.add_times() = std::move(time);
  return absl::OkStatus();
}

absl::StatusOr<KernelBench::Samples> KernelBench::Sample(client::RuntimeGraph& graph,
                                                         int launches) const {
  using Clock = std::chrono::steady_clock;
  auto measure = [&](int times) {
    return device_.Microseconds([&] {
      for (int i = 0; i < times; ++i) HACKC_RETURN_IF_ERROR(graph.Launch(nullptr));
      return absl::OkStatus();
    });
  };
  const Clock::time_point warm = Clock::now() + kWarmUp;
  double graph_us = 0;
  for (int i = 0; i < 2 || Clock::now() < warm; ++i) {
    HACKC_ASSIGN_OR_RETURN(graph_us, measure(1));
  }
  const int times =
      static_cast<int>(std::clamp(kSampleMicroseconds / std::max(graph_us, 1.0), 1.0, 100.0));
  std::vector<double> samples;
  const Clock::time_point end = Clock::now() + kSampling;
  while (samples.size() < kMinSamples || (samples.size() < kMaxSamples && Clock::now() < end)) {
    HACKC_ASSIGN_OR_RETURN(const double us, measure(times));
    samples.push_back(us / times / launches);
  }
  std::sort(samples.begin(), samples.end());
  const auto percentile = [&](double share) {
    return samples[static_cast<size_t>(std::lround(share * (samples.size() - 1)))];
  };
  const double median = percentile(0.5);
  return Samples{median, (percentile(0.9) - percentile(0.1)) / median,
                 static_cast<uint32_t>(samples.size())};
}

}  // namespace hackc::server
