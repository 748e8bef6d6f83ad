// SPDX-License-Identifier: MIT
#include "client/cli/render.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/json_text.h"
#include "client/cli/text_table.h"
#include "client/cli/timing_table.h"
#include "client/runtime/dim_expr.h"
#include "nlohmann/json.hpp"

namespace hackc::client {
namespace {

using nlohmann::ordered_json;

std::string DTypeName(v1::DType dtype) {
  std::string name = v1::DType_Name(dtype);  // DTYPE_BFLOAT16
  return name.size() > 6 ? absl::AsciiStrToLower(name.substr(6)) : name;
}

// Values of the grid at the upper bounds of the kernel's symbols; empty when a formula has none.
std::vector<int64_t> GridAtMax(const v1::Kernel& kernel) {
  SymbolValues symbols;
  for (const v1::Symbol& symbol : kernel.valid()) symbols[symbol.name()] = symbol.max();
  std::vector<int64_t> values;
  for (const v1::DimExpr& formula : kernel.grid()) {
    auto value = Evaluate(formula, symbols);
    if (!value.ok()) return {};
    values.push_back(*value);
  }
  return values;
}

// Without the trailing ones of a grid or block: 256 x 1 x 1 is "256".
std::string Extents(std::vector<std::string> extents) {
  while (extents.size() > 1 && extents.back() == "1") extents.pop_back();
  return absl::StrJoin(extents, " x ");
}

std::string GridText(const v1::Kernel& kernel) {
  std::vector<std::string> formulas;
  std::vector<std::string> values;
  bool symbolic = false;
  for (const v1::DimExpr& formula : kernel.grid()) {
    formulas.push_back(FormulaText(formula));
    symbolic |= IsSymbolic(formula);
  }
  for (int64_t value : GridAtMax(kernel)) values.push_back(absl::StrCat(value));
  if (!symbolic || values.empty()) return Extents(formulas);
  return absl::StrCat(Extents(formulas), " = ", Extents(values));
}

std::string BlockText(const v1::Kernel& kernel) {
  std::vector<std::string> extents;
  for (uint32_t extent : kernel.block()) extents.push_back(absl::StrCat(extent));
  return Extents(extents);
}

// Stages that are no pass; all others add up to the time of the passes.
bool IsPass(const std::string& stage) {
  return stage != "nvrtc" && stage != "store" && stage != "queued" && stage != "lookup" &&
         stage != "check";
}

template <typename Predicate>
std::string Milliseconds(const google::protobuf::RepeatedPtrField<v1::StageTime>& times,
                         Predicate wanted) {
  double sum = 0;
  for (const v1::StageTime& time : times) sum += wanted(time.stage()) ? time.milliseconds() : 0;
  return absl::StrFormat("%.1f", sum);
}

ordered_json TimesJson(const google::protobuf::RepeatedPtrField<v1::StageTime>& times) {
  ordered_json object = ordered_json::object();
  for (const v1::StageTime& time : times) {
    object[time.stage()] = object.value(time.stage(), 0.0) + time.milliseconds();
  }
  return object;
}

ordered_json KernelJson(const v1::KernelReady& ready) {
  const v1::Kernel& kernel = ready.kernel();
  std::vector<std::string> grid;
  for (const v1::DimExpr& formula : kernel.grid()) grid.push_back(FormulaText(formula));
  ordered_json object;
  object["name"] = kernel.name();
  object["computes"] = kernel.computes();
  object["key"] = kernel.key();
  object["digest"] = kernel.digest();
  object["entry"] = kernel.entry();
  object["arch"] = kernel.arch();
  object["cubin_bytes"] = kernel.cubin_bytes();
  object["registers"] = kernel.registers();
  object["shared_bytes"] = kernel.static_shared_bytes() + kernel.dynamic_shared_bytes();
  object["static_shared_bytes"] = kernel.static_shared_bytes();
  object["dynamic_shared_bytes"] = kernel.dynamic_shared_bytes();
  object["spill_bytes"] = kernel.spill_bytes();
  object["cache"] = ready.hit() ? "hit" : "miss";
  object["grid"] = grid;
  object["grid_at_max"] = GridAtMax(kernel);
  object["block"] = std::vector<uint32_t>(kernel.block().begin(), kernel.block().end());
  object["times"] = TimesJson(ready.times());
  return object;
}

// The full sentence is in --json; a table wider than a screen helps nobody.
std::string Shortened(const std::string& text, size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 3) + "...";
}

}  // namespace

void CompileResult::Add(const v1::CompileEvent& event) {
  if (event.has_kernel()) kernels.push_back(event.kernel());
  if (event.has_program()) program = event.program();
  if (event.has_report()) report = event.report();
}

void CompileResult::Finish() {
  std::map<std::pair<std::string, std::string>, int> order;
  for (int i = 0; i < program.program().kernels_size(); ++i) {
    const v1::Kernel& kernel = program.program().kernels(i);
    order.emplace(std::make_pair(kernel.name(), kernel.key()), i);
  }
  auto position = [&](const v1::KernelReady& ready) {
    auto found = order.find({ready.kernel().name(), ready.kernel().key()});
    return found == order.end() ? static_cast<int>(order.size()) : found->second;
  };
  std::stable_sort(kernels.begin(), kernels.end(),
                   [&](const auto& a, const auto& b) { return position(a) < position(b); });
}

std::string ResultTable(const CompileResult& result) {
  std::vector<Row> rows;
  for (const v1::KernelReady& ready : result.kernels) {
    const v1::Kernel& kernel = ready.kernel();
    rows.push_back({kernel.name(), Shortened(kernel.computes(), 56), GridText(kernel),
                    BlockText(kernel),
                    absl::StrCat(kernel.static_shared_bytes() + kernel.dynamic_shared_bytes()),
                    absl::StrCat(kernel.registers()), absl::StrCat(kernel.spill_bytes()),
                    absl::StrCat(kernel.cubin_bytes()), ready.hit() ? "hit" : "miss",
                    Milliseconds(ready.times(), IsPass),
                    Milliseconds(ready.times(), [](const auto& s) { return s == "nvrtc"; }),
                    Milliseconds(ready.times(), [](const auto& s) { return s == "store"; })});
  }
  const v1::Program& program = result.program.program();
  std::string text = absl::StrCat(
      result.model, "  ", program.arch(), "  ", DTypeName(program.dtype()), "  ",
      result.program.digest(), "\n\n",
      TextTable({"<kernel", "<computes", "<grid = at most", "<block", "shared B", "regs", "spill B",
                 "cubin B", "<cache", "passes ms", "nvrtc ms", "store ms"},
                rows));
  std::vector<std::string> stages;
  for (const v1::StageTime& time : result.report.times()) {
    stages.push_back(absl::StrFormat("%s %.1f", time.stage(), time.milliseconds()));
  }
  if (!stages.empty()) {
    absl::StrAppend(&text, "\nstages in ms: ", absl::StrJoin(stages, ", "), "\n");
  }
  absl::StrAppendFormat(&text, "\n%d kernels: %d from the cache, %d compiled; %.1f ms%s\n",
                        result.kernels.size(), result.report.hits(), result.report.misses(),
                        result.report.compile_ms(),
                        result.program.hit() ? ", the whole program from the cache" : "");
  if (!result.report.timing_json().empty()) {
    absl::StrAppend(&text, "\n", TimingTable(result.report.timing_json()));
  }
  return text;
}

std::string ResultJson(const CompileResult& result) {
  const v1::Program& program = result.program.program();
  ordered_json object;
  object["model"] = result.model;
  object["arch"] = program.arch();
  object["dtype"] = DTypeName(program.dtype());
  object["program_digest"] = result.program.digest();
  object["compile_ms"] = result.report.compile_ms();
  object["cache"] = {{"hits", result.report.hits()},
                     {"misses", result.report.misses()},
                     {"program", result.program.hit() ? "hit" : "miss"}};
  object["kernels"] = ordered_json::array();
  for (const v1::KernelReady& ready : result.kernels)
    object["kernels"].push_back(KernelJson(ready));
  object["times"] = TimesJson(result.report.times());
  if (!result.report.timing_json().empty()) {
    const bool readable = ParseJson(result.report.timing_json()).ok();
    object["timing"] = readable ? ordered_json::parse(result.report.timing_json()) : ordered_json();
  }
  // Names come from outside; text that is no UTF-8 is replaced, not thrown on.
  return object.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace hackc::client
