// SPDX-License-Identifier: MIT
#include "server/program_timer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "server/convert.h"
#include "server/log.h"
#include "server/milliseconds.h"

namespace hackc::server {
namespace {

using v1::worker::BenchCall;
using v1::worker::BenchResult;
using v1::worker::Reply;
using v1::worker::Request;

// Of two copies of the same bytes, before the first kernel and after the last.
constexpr double kSameRate = 0.05;

BenchResult Faulty(v1::worker::Fault fault, std::string_view detail) {
  BenchResult result;
  result.set_fault(fault);
  result.set_detail(std::string(detail));
  return result;
}

// What else than the kernel may have done: the process was killed, the GPU had a fault of its own.
bool MayBeChance(v1::worker::Fault fault) {
  return fault == v1::worker::CRASH || fault == v1::worker::CUDA_ERROR;
}

absl::Status OfReference(const v1::Kernel& kernel, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("kernel \"", kernel.name(),
                                                  "\": its reference: ", status.message()));
}

// Of a call that came back without a result.
BenchResult Failed(const absl::Status& status) {
  const std::string_view message(status.message().data(), status.message().size());
  switch (status.code()) {
    case absl::StatusCode::kDeadlineExceeded: return Faulty(v1::worker::HANG, message);
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss: return Faulty(v1::worker::CRASH, message);
    default: return Faulty(v1::worker::NOT_TIMED, message);
  }
}

BenchResult ResultOf(absl::StatusOr<Reply> reply) {
  return reply.ok() ? std::move(*reply->mutable_bench()) : Failed(reply.status());
}

// Symbol values that are no multiple of any tile, inside the range that the kernel is proven for;
// room that others lie in, such as the pages of a cache, is not scarce.
int64_t OddValue(const v1::Symbol& symbol) {
  const int64_t odd = symbol.name() == "seq"     ? 37
                      : symbol.name() == "past"  ? 29
                      : symbol.name() == "batch" ? 3
                                                 : symbol.max();
  return std::clamp(odd, symbol.min(), symbol.max());
}

template <typename ValueOf>
BenchCall::Shape MakeShape(const v1::Kernel& kernel, const char* label, ValueOf value_of) {
  BenchCall::Shape shape;
  shape.set_label(label);
  for (const v1::Symbol& symbol : kernel.valid()) {
    (*shape.mutable_symbols())[symbol.name()] = value_of(symbol);
  }
  return shape;
}

void AddShapes(BenchCall& call) {
  const v1::Kernel& kernel = call.kernel();
  const auto largest = MakeShape(kernel, "largest", [](const auto& s) { return s.max(); });
  const auto smallest = MakeShape(kernel, "smallest", [](const auto& s) { return s.min(); });
  *call.add_checked() = MakeShape(kernel, "odd", OddValue);
  *call.add_timed() = largest;
  const bool fixed = std::all_of(kernel.valid().begin(), kernel.valid().end(),
                                 [](const v1::Symbol& s) { return s.min() == s.max(); });
  if (!fixed) *call.add_timed() = smallest;
}

}  // namespace

absl::Status ProgramTimer::Prepare() {
  if (!calls_.empty()) return absl::OkStatus();
  HACKC_ASSIGN_OR_RETURN(const Rates rates, parts_.backend.TargetRates(program_.program.arch()));
  std::vector<BenchCall> calls;
  using Built = absl::StatusOr<BuiltKernel>;
  std::vector<std::future<Built>> references;
  absl::Status status;
  for (int i = 0; i < program_.program.kernels_size(); ++i) {
    const v1::Kernel& kernel = program_.program.kernels(i);
    const auto& texts = program_.ir.kernels(i).texts();
    const auto loop = texts.find("loop");
    if (loop == texts.end()) {
      status = absl::InternalError(absl::StrCat("kernel \"", kernel.name(), "\" has no Loop IR"));
      break;
    }
    Request request;
    request.mutable_reference()->set_name(kernel.name());
    request.mutable_reference()->set_loop(loop->second);
    request.mutable_reference()->set_arch(kernel.arch());
    absl::StatusOr<Reply> reply =
        parts_.workers.Run({.request = std::move(request), .cancelled = cancelled_});
    // Not returned from here: the builds under way call back into what this function holds.
    if (!reply.ok()) {
      status = OfReference(kernel, reply.status());
      break;
    }
    const v1::worker::KernelSource source =
        std::move(*reply->mutable_reference()->mutable_source());
    reply->mutable_reference()->clear_source();
    BenchCall& call = calls.emplace_back();
    *call.mutable_kernel() = kernel;
    call.set_cubin(*program_.cubins.at(i));
    *call.mutable_reference() = source.kernel();
    *call.mutable_uses() = std::move(*reply->mutable_reference());
    call.set_bytes_per_second(rates.bytes_per_second);
    call.set_operations_per_second(
        std::max(rates.matrix_operations_per_second, rates.fma_operations_per_second));
    AddShapes(call);
    auto promise = std::make_shared<std::promise<Built>>();
    references.push_back(promise->get_future());
    parts_.kernels.Build(
        MakeKey("kernel", KeyFieldsFromProto(source.key_fields()), parts_.nvrtc_version), source,
        [this] { return cancelled_(); },
        [promise](Built built) { promise->set_value(std::move(built)); });
  }
  for (size_t i = 0; i < references.size(); ++i) {
    const Built built = references[i].get();
    if (built.ok()) {
      calls[i].set_reference_cubin(*built->kernel.cubin);
    } else if (status.ok()) {
      status = OfReference(calls[i].kernel(), built.status());
    }
  }
  if (status.ok()) calls_ = std::move(calls);
  return status;
}

absl::StatusOr<Reply> ProgramTimer::Ask(const Request& request) {
  absl::StatusOr<Reply> reply = parts_.bench.Run({.request = request});
  // The process may have gone since the last program, through no kernel's fault.
  if (!reply.ok()) reply = parts_.bench.Run({.request = request});
  return reply;
}

absl::Status ProgramTimer::Works() {
  Request request;
  request.mutable_describe();
  return Ask(request).status();
}

absl::StatusOr<v1::worker::GpuFacts> ProgramTimer::Probe() {
  Request request;
  request.mutable_probe();
  HACKC_ASSIGN_OR_RETURN(Reply reply, Ask(request));
  return std::move(*reply.mutable_gpu());
}

BenchResult ProgramTimer::Measure(int kernel, BenchCall::Part part, int attempts) {
  BenchResult result;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    Request request;
    *request.mutable_bench() = calls_[kernel];
    request.mutable_bench()->set_part(part);
    result = ResultOf(parts_.bench.Run({.request = std::move(request), .cancelled = cancelled_}));
    if (result.fault() == v1::worker::NONE) break;
    // The process is another one now. If that cannot work, no kernel is to blame.
    if (absl::Status works = Works(); !works.ok()) {
      stop_ = std::string(works.message());
      return Faulty(v1::worker::NOT_TIMED, stop_);
    }
    if (!MayBeChance(result.fault())) break;
  }
  return result;
}

absl::Status ProgramTimer::Blame(int kernel, const BenchResult& result) {
  guilty_ = kernel;
  return absl::InternalError(absl::StrCat(
      "kernel \"", program_.program.kernels(kernel).name(),
      "\": failed on the GPU: ", std::string(FaultName(result.fault())), ": ", result.detail()));
}

absl::Status ProgramTimer::Check(const Progress& progress) {
  HACKC_RETURN_IF_ERROR(Prepare());
  if (const absl::Status works = Works(); !works.ok()) {
    stop_ = std::string(works.message());
    Log().warn("bench: nothing is checked: {}", stop_);
    return cancelled_() ? absl::CancelledError("nobody waits for it any more") : absl::OkStatus();
  }
  std::atomic<bool> failed{false};
  std::vector<std::future<absl::StatusOr<Reply>>> replies;
  for (const BenchCall& call : calls_) {
    Request request;
    *request.mutable_bench() = call;
    request.mutable_bench()->set_part(BenchCall::CHECK);
    auto promise = std::make_shared<std::promise<absl::StatusOr<Reply>>>();
    replies.push_back(promise->get_future());
    parts_.bench.Submit(
        {.request = std::move(request), .cancelled = [&] { return failed || cancelled_(); }},
        [promise](auto reply) { promise->set_value(std::move(reply)); });
  }
  absl::Status status;
  complete_ = true;
  const int total = program_.program.kernels_size();
  for (int i = 0; i < total; ++i) {  // all of them: they hold `failed`
    const std::string& name = program_.program.kernels(i).name();
    progress(i, total, name);
    BenchResult result = ResultOf(replies[i].get());
    if (failed) continue;
    if (result.fault() != v1::worker::NONE && !stop_.empty()) {
      result = Faulty(v1::worker::NOT_TIMED, stop_);
    } else if (MayBeChance(result.fault())) {
      result = Measure(i, BenchCall::CHECK, 1);
    }
    if (result.fault() != v1::worker::NONE) {
      complete_ = false;
      if (!cancelled_()) {
        Log().warn("bench: kernel {}: {}: {}", name, FaultName(result.fault()), result.detail());
      }
      if (result.fault() != v1::worker::NOT_TIMED) {
        failed = true;
        status = Blame(i, result);
      }
    }
    checks_.push_back(std::move(result));
  }
  progress(total, total, "");
  return cancelled_() ? absl::CancelledError("nobody waits for it any more") : status;
}

TimedProgram ProgramTimer::Time(const Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  TimedProgram timed;
  TimingFacts facts{.gpu = parts_.gpu};
  const auto note = [&](const absl::Status& status) {
    if (!status.ok() && stop_.empty()) stop_ = std::string(status.message());
  };
  if (absl::StatusOr<Rates> rates = parts_.backend.TargetRates(program_.program.arch());
      rates.ok()) {
    facts.rates = *rates;
  }
  if (stop_.empty()) note(Prepare());
  if (stop_.empty()) {
    const absl::StatusOr<v1::worker::GpuFacts> gpu = Probe();
    note(gpu.status());
    if (gpu.ok()) facts.copy_bytes_per_second = gpu->copy_bytes_per_second();
  }
  const int total = program_.program.kernels_size();
  for (int i = 0; i < total; ++i) {
    const std::string& name = program_.program.kernels(i).name();
    progress(i, total, name);
    if (stop_.empty() && cancelled_()) stop_ = "nobody waits for it any more";
    if (stop_.empty() && MillisecondsSince(start) > parts_.program_limit.count()) {
      stop_ = absl::StrCat("the time limit of a program, ", parts_.program_limit.count() / 1000,
                           " s, is over");
    }
    if (i < static_cast<int>(checks_.size()) && checks_[i].fault() != v1::worker::NONE) {
      facts.kernels.push_back(checks_[i]);
      continue;
    }
    if (!stop_.empty()) {
      facts.kernels.push_back(Faulty(v1::worker::NOT_TIMED, stop_));
      continue;
    }
    BenchResult result = Measure(i, BenchCall::TIME, 2);
    const v1::worker::Fault fault = result.fault();
    if (fault != v1::worker::NONE) {
      Log().warn("bench: kernel {}: {}: {}", name, FaultName(fault), result.detail());
    }
    // A hang may be a time limit that is short for a slow kernel, which ran in its check.
    if (timed.fault.ok() && (fault == v1::worker::RED_ZONE || fault == v1::worker::CUDA_ERROR ||
                             fault == v1::worker::CRASH)) {
      timed.fault = Blame(i, result);
    }
    facts.kernels.push_back(std::move(result));
  }
  progress(total, total, "");
  if (stop_.empty()) {
    const absl::StatusOr<v1::worker::GpuFacts> again = Probe();
    const double before = facts.copy_bytes_per_second;
    const double after = again.ok() ? again->copy_bytes_per_second() : 0;
    if (std::abs(after - before) > kSameRate * before) {
      facts.disturbances.push_back(absl::StrCat("a copy reached ", before * 1e-9,
                                                " GB/s before the kernels and ", after * 1e-9,
                                                " GB/s after them"));
    }
  }
  facts.seconds = MillisecondsSince(start) / 1000;
  timed.json = TimingJson(program_.program, facts, &timed.final);
  return timed;
}

}  // namespace hackc::server
