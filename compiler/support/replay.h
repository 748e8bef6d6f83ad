// SPDX-License-Identifier: MIT
// A failure of the compiler that can be seen again: INTERNAL, with a text in its payload that
// `hackc-opt` runs. Whoever owns the process writes that text to a file (server/replay.h) and names
// it in the message.
//
//   ASSIGN(tile, Attempt("split_axes", "pass split_axes", [&] { return Print(fn); },
//                        [&] { return SplitAxes(fn); }));
//   return WithReplayTarget(status, "sm_90a");                        // where the target is known
//   std::optional<std::string> text = ReplayText(status);
//
// Thread safety: pure functions.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "compiler/support/cat.h"

namespace hackc {

inline constexpr char kReplayPayload[] = "hackc.replay";

inline std::optional<std::string> ReplayText(const absl::Status& status) {
  const auto payload = status.GetPayload(kReplayPayload);
  if (!payload) return std::nullopt;
  return std::string(*payload);
}

// `pass` failed on IR with the text `before`; "none": that IR is wrong itself.
inline absl::Status Replayable(std::string_view pass, std::string_view message,
                               std::string_view before) {
  absl::Status status = absl::InternalError(Cat(message));
  status.SetPayload(kReplayPayload, absl::Cord(Cat("# pass: ", pass, "  verify: yes\n", before)));
  return status;
}

// The status with what its text was compiled for in the first line.
inline absl::Status WithReplayTarget(absl::Status status, std::string_view arch) {
  std::optional<std::string> text = ReplayText(status);
  if (!text) return status;
  text->insert(text->find('\n'), Cat("  target: ", arch));
  status.SetPayload(kReplayPayload, absl::Cord(*text));
  return status;
}

// What `work` returns; an error of it, or what it throws, as a failure of `pass` on what `print`
// gives. What failed in a step inside it has told more; FAILED_PRECONDITION, a target that cannot
// have what was asked for, is no failure of ours.
template <typename Print, typename Work>
auto Attempt(std::string_view pass, std::string_view where, Print&& print, Work&& work)
    -> decltype(work()) {
  std::string what;
  try {
    auto result = work();
    if (result.ok() || ReplayText(result.status()) ||
        result.status().code() == absl::StatusCode::kFailedPrecondition) {
      return result;
    }
    what = std::string(result.status().message());
  } catch (const std::exception& error) {  // InternalError, or the standard library's
    what = error.what();
  }
  return Replayable(pass, Cat(where, ": ", what), print());
}

}  // namespace hackc
