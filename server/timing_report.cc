// SPDX-License-Identifier: MIT
#include "server/timing_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hackc::server {
namespace {

using nlohmann::ordered_json;
using v1::worker::BenchResult;
using v1::worker::BenchTime;

// Four digits say all that a measurement knows, and keep the text short.
double Rounded(double value) {
  if (!std::isfinite(value)) return 0;
  double rounded = 0;
  return absl::SimpleAtod(absl::StrFormat("%.4g", value), &rounded) ? rounded : 0;
}

std::string Dump(const ordered_json& report) {
  return report.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json SymbolsJson(const google::protobuf::Map<std::string, int64_t>& symbols) {
  return std::map<std::string, int64_t>(symbols.begin(), symbols.end());
}

class Reporter {
 public:
  Reporter(const v1::Program& program, const TimingFacts& facts)
      : program_(program), facts_(facts) {}

  std::string Run(bool* final) {
    ordered_json kernels = ordered_json::array();
    for (int i = 0; i < program_.kernels_size(); ++i) kernels.push_back(KernelJson(i));
    ordered_json entries = ordered_json::array();
    if (program_.prepare_size() > 0) entries.push_back(EntryJson("prepare", program_.prepare()));
    for (const v1::EntryPoint& entry : program_.entry_points()) {
      entries.push_back(EntryJson(entry.name(), entry.steps()));
      for (const v1::Symbol& symbol : entry.symbols()) {
        entries.back()["ranges"][symbol.name()] = {symbol.min(), symbol.max()};
      }
    }
    const bool disturbed = spread_out_ || !facts_.disturbances.empty();
    *final = !disturbed && problems_.empty();
    ordered_json report;
    report["format"] = kTimingFormat;
    report["gpu"] = facts_.gpu.name;
    report["driver"] = facts_.gpu.driver;
    report["arch"] = program_.arch();
    report["final"] = *final;
    report["disturbed"] = disturbed;
    report["disturbances"] = facts_.disturbances;
    report["problems"] = problems_;
    report["seconds"] = Rounded(facts_.seconds);
    report["copy_bytes_per_second"] = Rounded(facts_.copy_bytes_per_second);
    report["target_rates"] = {
        {"bytes_per_second", facts_.rates.bytes_per_second},
        {"fma_operations_per_second", facts_.rates.fma_operations_per_second},
        {"matrix_operations_per_second", facts_.rates.matrix_operations_per_second}};
    report["kernels"] = std::move(kernels);
    report["entry_points"] = std::move(entries);
    return Dump(report);
  }

 private:
  // Operations that a program of this storage type can do in a second.
  double OperationRate() const {
    return program_.dtype() == v1::DTYPE_FLOAT32 ? facts_.rates.fma_operations_per_second
                                                 : facts_.rates.matrix_operations_per_second;
  }
  double Microseconds(const BenchTime& time, double bytes_per_second) const {
    const double operations = OperationRate();
    if (bytes_per_second <= 0 || operations <= 0) return 0;
    return 1e6 * std::max(time.bytes() / bytes_per_second, time.operations() / operations);
  }

  ordered_json TimeJson(const BenchTime& time) {
    spread_out_ |= time.disturbed();
    const double floor = Microseconds(time, facts_.copy_bytes_per_second);
    return {{"shape", time.shape().label()},
            {"symbols", SymbolsJson(time.shape().symbols())},
            {"median_us", Rounded(time.median_us())},
            {"spread", Rounded(time.spread())},
            {"samples", time.samples()},
            {"disturbed", time.disturbed()},
            {"bytes", time.bytes()},
            {"operations", time.operations()},
            {"floor_us", Rounded(floor)},
            {"share_of_floor", Rounded(floor / time.median_us())},
            {"predicted_us", Rounded(Microseconds(time, facts_.rates.bytes_per_second))}};
  }

  ordered_json KernelJson(int index) {
    const v1::Kernel& kernel = program_.kernels(index);
    const BenchResult& result = facts_.kernels.at(index);
    ordered_json object;
    object["name"] = kernel.name();
    object["digest"] = kernel.digest();
    object["status"] = FaultName(result.fault());
    if (result.fault() != v1::worker::NONE) {
      object["detail"] = result.detail();
      problems_.push_back(absl::StrCat("kernel \"", kernel.name(),
                                       "\": ", std::string(FaultName(result.fault())), ": ",
                                       result.detail()));
    }
    object["times"] = ordered_json::array();
    for (const BenchTime& time : result.times()) object["times"].push_back(TimeJson(time));
    return object;
  }

  using Steps = google::protobuf::RepeatedPtrField<v1::Step>;
  static void Count(const Steps& steps, uint64_t times, std::map<uint32_t, uint64_t>& launches) {
    for (const v1::Step& step : steps) {
      if (step.has_launch()) launches[step.launch().kernel()] += times;
      if (step.has_repeat()) Count(step.repeat().steps(), times * step.repeat().count(), launches);
    }
  }

  ordered_json EntryJson(const std::string& name, const Steps& steps) const {
    std::map<uint32_t, uint64_t> launches;
    Count(steps, 1, launches);
    ordered_json counts = ordered_json::object();
    uint64_t total = 0;
    for (const auto& [kernel, count] : launches) {
      counts[program_.kernels(kernel).name()] = count;
      total += count;
    }
    ordered_json totals = ordered_json::array();
    for (const char* label : {"largest", "smallest"}) {
      ordered_json sum = TotalJson(label, launches);
      if (!sum.is_null()) totals.push_back(std::move(sum));
    }
    return {{"name", name},
            {"ranges", ordered_json::object()},
            {"launches", total},
            {"kernel_launches", counts},
            {"totals", totals}};
  }

  // The sum over an entry point's launches at one shape. A kernel without symbols has one time for
  // all shapes.
  ordered_json TotalJson(const std::string& label,
                         const std::map<uint32_t, uint64_t>& launches) const {
    double median = 0, floor = 0, predicted = 0;
    bool complete = true, any = false;
    std::map<std::string, int64_t> symbols;  // in order: a protobuf map has another each time
    for (const auto& [kernel, count] : launches) {
      const auto& times = facts_.kernels.at(kernel).times();
      auto found = std::find_if(times.begin(), times.end(),
                                [&](const BenchTime& t) { return t.shape().label() == label; });
      any |= found != times.end();
      if (found == times.end() && times.size() == 1 &&
          facts_.kernels.at(kernel).fault() == v1::worker::NONE) {
        found = times.begin();
      }
      if (found == times.end()) {
        complete = false;
        continue;
      }
      median += count * found->median_us();
      floor += count * Microseconds(*found, facts_.copy_bytes_per_second);
      predicted += count * Microseconds(*found, facts_.rates.bytes_per_second);
      for (const auto& [symbol, value] : found->shape().symbols()) symbols[symbol] = value;
    }
    if (!any) return nullptr;
    return {{"shape", label},
            {"symbols", ordered_json(symbols)},
            {"complete", complete},
            {"median_us", Rounded(median)},
            {"floor_us", Rounded(floor)},
            {"share_of_floor", Rounded(floor / median)},
            {"predicted_us", Rounded(predicted)}};
  }

  const v1::Program& program_;
  const TimingFacts& facts_;
  std::vector<std::string> problems_;
  bool spread_out_ = false;
};

}  // namespace

std::string TimingJson(const v1::Program& program, const TimingFacts& facts, bool* final) {
  return Reporter(program, facts).Run(final);
}

std::string NotTimedJson(const GpuInfo& gpu, const std::string& reason) {
  ordered_json report;
  report["format"] = kTimingFormat;
  report["gpu"] = gpu.name;
  report["driver"] = gpu.driver;
  report["final"] = false;
  report["problems"] = {"not timed: " + reason};
  report["kernels"] = ordered_json::array();
  report["entry_points"] = ordered_json::array();
  return Dump(report);
}

std::string_view FaultName(v1::worker::Fault fault) {
  switch (fault) {
    case v1::worker::NONE: return "ok";
    case v1::worker::WRONG_RESULT: return "wrong_result";
    case v1::worker::RED_ZONE: return "red_zone";
    case v1::worker::CUDA_ERROR: return "cuda_error";
    case v1::worker::IMPOSSIBLE_TIME: return "impossible_time";
    case v1::worker::HANG: return "hang";
    case v1::worker::CRASH: return "crash";
    default: return "not_timed";
  }
}

}  // namespace hackc::server
