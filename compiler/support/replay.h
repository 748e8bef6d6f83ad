// SPDX-License-Identifier: MIT
// A failure of the compiler that can be seen again: INTERNAL, with a text in its payload that `hackc-opt` runs. Whoever
// owns the process writes that text to a file (server/replay.h) and names it in the message.
//
//   return Replayable("split_axes", Cat("pass split_axes: ", error.what()), ir::Print(tile));
//   SetReplayTarget(status, "sm_90a");                                // where the target is known
//   std::optional<std::string> text = ReplayText(status);
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
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

// Adds what the text was compiled for to its first line.
inline void SetReplayTarget(absl::Status& status, std::string_view arch) {
  std::optional<std::string> text = ReplayText(status);
  if (!text) return;
  text->insert(text->find('\n'), Cat("  target: ", arch));
  status.SetPayload(kReplayPayload, absl::Cord(*text));
}

}  // namespace hackc
