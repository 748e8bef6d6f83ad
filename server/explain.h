// SPDX-License-Identifier: MIT
// Which of a plan's IR texts an Explain request asks for. "graph" and "tensor" are of the whole
// model, the other levels of each kernel; an empty kernel means all, an empty level is "all".
// Thread safety: pure functions.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "hackc/v1/compiler.pb.h"
#include "hackc/v1/worker.pb.h"

namespace hackc::server {

absl::Status CheckLevel(const std::string& level);

absl::StatusOr<v1::ExplainResponse> SelectTexts(const v1::worker::PlanResult& plan,
                                                const std::string& kernel,
                                                const std::string& level);

}  // namespace hackc::server
