// SPDX-License-Identifier: MIT
#include "client/cli/timing_table.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/json_text.h"
#include "client/cli/text_table.h"
#include "nlohmann/json.hpp"

namespace hackc::client {
namespace {

using nlohmann::json;

std::string Text(const json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

double Number(const json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

bool Flag(const json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

// The elements of an array or the values of an object; none when it is neither or absent.
const json& Items(const json& object, const char* field) {
  static const json* empty = new json(json::array());
  const auto found = object.find(field);
  return found != object.end() && found->is_structured() ? *found : *empty;
}

std::string Microseconds(double us) {
  return us <= 0 ? "" : absl::StrFormat("%.*f", us < 100 ? 2 : 1, us);
}

std::string Percent(double share) { return absl::StrFormat("%.0f %%", 100 * share); }

std::string Symbols(const json& time) {
  std::vector<std::string> values;
  for (const auto& [name, value] : Items(time, "symbols").items()) {
    values.push_back(absl::StrCat(name, " ", value.dump()));
  }
  return absl::StrJoin(values, ", ");
}

Row TimeRow(const std::string& name, const std::string& launches, const json& time) {
  return {name,
          launches,
          Symbols(time),
          Microseconds(Number(time, "median_us")),
          time.contains("spread")
              ? Percent(Number(time, "spread")) + (Flag(time, "disturbed") ? " !" : "")
              : "",
          Microseconds(Number(time, "floor_us")),
          Percent(Number(time, "share_of_floor")),
          Microseconds(Number(time, "predicted_us"))};
}

}  // namespace

std::string TimingTable(const std::string& timing_json) {
  const absl::StatusOr<json> parsed = ParseJson(timing_json);
  if (!parsed.ok() || !parsed->is_object()) return "the timing report is not readable\n";
  const json& report = *parsed;
  std::map<std::string, std::vector<std::string>> launches;  // by kernel
  for (const json& entry : Items(report, "entry_points")) {
    for (const auto& [kernel, count] : Items(entry, "kernel_launches").items()) {
      launches[kernel].push_back(absl::StrCat(Text(entry, "name"), " ", count.dump()));
    }
  }
  std::vector<Row> rows;
  for (const json& kernel : Items(report, "kernels")) {
    const std::string name = Text(kernel, "name");
    std::string shown = name, counts = absl::StrJoin(launches[name], ", ");
    for (const json& time : Items(kernel, "times")) {
      rows.push_back(TimeRow(shown, counts, time));
      shown.clear();
      counts.clear();
    }
    if (const std::string status = Text(kernel, "status"); status != "ok") {
      rows.push_back({shown, counts, status, "", "", "", "", ""});
    }
  }
  for (const json& entry : Items(report, "entry_points")) {
    for (const json& total : Items(entry, "totals")) {
      rows.push_back(TimeRow(
          absl::StrCat("= ", Text(entry, "name"), Flag(total, "complete") ? "" : ", incomplete"),
          absl::StrCat(Number(entry, "launches")), total));
    }
  }
  std::string text =
      absl::StrCat("times on ", Text(report, "gpu"), ", driver ", Text(report, "driver"), "\n\n");
  if (!rows.empty()) {
    absl::StrAppend(&text, TextTable({"<kernel", "<launches", "<shape", "median us", "spread",
                                      "floor us", "of floor", "predicted us"},
                                     rows));
    absl::StrAppendFormat(
        &text, "\nfloor: %.0f GB/s, as a copy reached; operations as the target's data sheet\n",
        Number(report, "copy_bytes_per_second") * 1e-9);
  }
  for (const json& line : Items(report, "problems")) {
    absl::StrAppend(&text, line.is_string() ? line.get<std::string>() : line.dump(), "\n");
  }
  for (const json& line : Items(report, "disturbances")) {
    absl::StrAppend(&text, "disturbed: ", line.is_string() ? line.get<std::string>() : line.dump(),
                    "\n");
  }
  if (Flag(report, "disturbed")) {
    absl::StrAppend(&text, "something else ran on the GPU (!): these times are not kept\n");
  }
  return text;
}

}  // namespace hackc::client
