// SPDX-License-Identifier: MIT
#include "server/explain.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hackc::server {
namespace {

constexpr std::array<std::string_view, 4> kKernelLevels = {"loop", "tile", "kernel", "cuda"};
constexpr std::array<std::string_view, 8> kLevels = {"graph",  "tensor", "loop", "tile",
                                                     "kernel", "cuda",   "all",  ""};

void Add(v1::ExplainResponse& response, std::string kernel, std::string_view level,
         const std::string& text) {
  v1::ExplainResponse::Text* out = response.add_texts();
  out->set_kernel(std::move(kernel));
  out->set_level(std::string(level));
  out->set_text(text);
}

}  // namespace

absl::Status CheckLevel(const std::string& level) {
  if (std::find(kLevels.begin(), kLevels.end(), level) != kLevels.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "level: expected graph, tensor, loop, tile, kernel, cuda or all, got \"", level, "\""));
}

absl::StatusOr<v1::ExplainResponse> SelectTexts(const v1::worker::PlanResult& plan,
                                                const std::string& kernel,
                                                const std::string& level) {
  const auto wanted = [&](std::string_view name) {
    return level.empty() || level == "all" || level == name;
  };
  v1::ExplainResponse response;
  if (wanted("graph")) Add(response, "", "graph", plan.graph_text());
  if (wanted("tensor")) Add(response, "", "tensor", plan.tensor_text());
  std::vector<std::string> names;
  bool found = kernel.empty();
  for (const v1::worker::KernelSource& source : plan.kernels()) {
    const std::string& name = source.kernel().name();
    names.push_back(name);
    if (!kernel.empty() && kernel != name) continue;
    found = true;
    for (const std::string_view kernel_level : kKernelLevels) {
      if (!wanted(kernel_level)) continue;
      const auto text = source.ir().find(std::string(kernel_level));
      if (text != source.ir().end()) {
        Add(response, name, kernel_level, text->second);
      } else if (kernel_level == "cuda") {
        Add(response, name, kernel_level, source.cuda());
      }
    }
  }
  if (!found) {
    return absl::NotFoundError(absl::StrCat("kernel: expected one of ", absl::StrJoin(names, ", "),
                                            ", got \"", kernel, "\""));
  }
  return response;
}

}  // namespace hackc::server
