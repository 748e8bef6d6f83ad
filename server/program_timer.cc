// SPDX-License-Identifier: MIT
#include "server/program_timer.h"

#include <algorithm>
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

absl::StatusOr<std::vector<BenchCall>> ProgramTimer::PrepareCalls(const StoredProgram& program,
                                                                  const Cancelled& cancelled) {
  HACKC_ASSIGN_OR_RETURN(const Rates rates, parts_.backend.TargetRates(program.program.arch()));
  std::vector<BenchCall> calls;
  using Built = absl::StatusOr<BuiltKernel>;
  std::vector<std::future<Built>> references;
  for (int i = 0; i < program.program.kernels_size(); ++i) {
    const v1::Kernel& kernel = program.program.kernels(i);
    const auto& texts = program.ir.kernels(i).texts();
    const auto loop = texts.find("loop");
    if (loop == texts.end()) {
      return absl::InternalError(absl::StrCat("kernel \"", kernel.name(), "\" has no Loop IR"));
    }
    Request request;
    request.mutable_reference()->set_name(kernel.name());
    request.mutable_reference()->set_loop(loop->second);
    request.mutable_reference()->set_arch(kernel.arch());
    HACKC_ASSIGN_OR_RETURN(
        Reply reply, parts_.workers.Run({.request = std::move(request), .cancelled = cancelled}));
    const v1::worker::KernelSource source = std::move(*reply.mutable_reference()->mutable_source());
    reply.mutable_reference()->clear_source();
    BenchCall& call = calls.emplace_back();
    *call.mutable_kernel() = kernel;
    call.set_cubin(*program.cubins.at(i));
    *call.mutable_reference() = source.kernel();
    *call.mutable_uses() = std::move(*reply.mutable_reference());
    call.set_bytes_per_second(rates.bytes_per_second);
    call.set_operations_per_second(
        std::max(rates.matrix_operations_per_second, rates.fma_operations_per_second));
    AddShapes(call);
    auto promise = std::make_shared<std::promise<Built>>();
    references.push_back(promise->get_future());
    parts_.kernels.Build(
        MakeKey("kernel", KeyFieldsFromProto(source.key_fields()), parts_.nvrtc_version), source,
        [cancelled] { return cancelled(); },
        [promise](Built built) { promise->set_value(std::move(built)); });
  }
  absl::Status status;
  for (size_t i = 0; i < calls.size(); ++i) {
    const Built built =
        references[i].get();  // all of them: the builder calls back into what they hold
    if (built.ok()) {
      calls[i].set_reference_cubin(*built->kernel.cubin);
    } else if (status.ok()) {
      status = absl::Status(built.status().code(),
                            absl::StrCat("the reference of kernel \"", calls[i].kernel().name(),
                                         "\": ", built.status().message()));
    }
  }
  HACKC_RETURN_IF_ERROR(status);
  return calls;
}

absl::StatusOr<v1::worker::GpuFacts> ProgramTimer::Probe() {
  Request request;
  request.mutable_probe();
  absl::StatusOr<Reply> reply = parts_.bench.Run({.request = request});
  // The process may have gone since the last program, through no kernel's fault.
  if (!reply.ok()) reply = parts_.bench.Run({.request = std::move(request)});
  HACKC_RETURN_IF_ERROR(reply.status());
  return std::move(*reply->mutable_gpu());
}

BenchResult ProgramTimer::Measure(BenchCall call) {
  Request request;
  *request.mutable_bench() = std::move(call);
  absl::StatusOr<Reply> reply = parts_.bench.Run({.request = std::move(request)});
  if (reply.ok()) return std::move(*reply->mutable_bench());
  const std::string_view message(reply.status().message().data(), reply.status().message().size());
  switch (reply.status().code()) {
    case absl::StatusCode::kDeadlineExceeded: return Faulty(v1::worker::HANG, message);
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss: return Faulty(v1::worker::CRASH, message);
    default: return Faulty(v1::worker::NOT_TIMED, message);
  }
}

TimedProgram ProgramTimer::Time(const StoredProgram& program, const Cancelled& cancelled,
                                const Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  TimingFacts facts{.gpu = parts_.gpu};
  std::string stop;  // why the kernels left are not timed
  std::vector<BenchCall> calls;
  const auto note = [&](const absl::Status& status) {
    if (!status.ok() && stop.empty()) stop = std::string(status.message());
  };
  if (program.program.arch() != parts_.gpu.arch) {
    stop = absl::StrCat("compiled for ", program.program.arch(), ", the GPU is ", parts_.gpu.arch);
  } else {
    if (absl::StatusOr<Rates> rates = parts_.backend.TargetRates(program.program.arch());
        rates.ok())
      facts.rates = *rates;
    absl::StatusOr<std::vector<BenchCall>> prepared = PrepareCalls(program, cancelled);
    note(prepared.status());
    if (prepared.ok()) calls = *std::move(prepared);
  }
  if (stop.empty()) {
    const absl::StatusOr<v1::worker::GpuFacts> gpu = Probe();
    note(gpu.status());
    if (gpu.ok()) facts.copy_bytes_per_second = gpu->copy_bytes_per_second();
  }
  const int total = program.program.kernels_size();
  for (int i = 0; i < total; ++i) {
    const std::string& name = program.program.kernels(i).name();
    progress(i, total, name);
    if (stop.empty() && cancelled()) stop = "nobody waits for it any more";
    if (stop.empty() && MillisecondsSince(start) > parts_.program_limit.count()) {
      stop = absl::StrCat("the time limit of a program, ", parts_.program_limit.count() / 1000,
                          " s, is over");
    }
    if (!stop.empty()) {
      facts.kernels.push_back(Faulty(v1::worker::NOT_TIMED, stop));
      continue;
    }
    BenchResult result = Measure(std::move(calls[i]));
    if (result.fault() != v1::worker::NONE) {
      Log().warn("bench: kernel {}: {}: {}", name, FaultName(result.fault()), result.detail());
      // The process is another one now. If that cannot work, no other kernel is to blame.
      note(Probe().status());
    }
    facts.kernels.push_back(std::move(result));
  }
  progress(total, total, "");
  if (stop.empty()) {
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
  TimedProgram timed;
  timed.json = TimingJson(program.program, facts, &timed.final);
  return timed;
}

}  // namespace hackc::server
