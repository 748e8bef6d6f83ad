// SPDX-License-Identifier: MIT
// A text of IR that says how it is to be run, and may hold what should come of it. Golden tests are such files.
//
//   # pass: split_axes  kind: edge  symbols: seq=5  seed: 1  target: sm_90a
//   hackc loop 1
//   ...
//   # ---- expected
//   hackc tile 1
//   ...
//
// Every part of the first line may be missing, the line itself too; `pass` may list several, as in `a,b`. `kind` is what a
// golden case shows: what the pass `does`, what it `leaves` alone, or an `edge` of sizes. Replay files
// (compiler/support/replay.h) are such texts too: `verify: yes` is --verify, the pass `emit_cuda` is --emit=cuda, and
// after `pass: nvrtc  entry: NAME` comes CUDA text.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hackc::opt {

inline constexpr std::string_view kExpectedLine = "# ---- expected\n";

struct CaseFile {
  std::vector<std::string> passes;
  std::map<std::string, int64_t> symbols;
  uint64_t seed = 1;
  std::string target = "sm_90a";
  std::string kind = "does";
  bool verify = false;
  std::string entry;
  std::string input;     // the first line included, so that lines keep their numbers
  std::string expected;  // empty: the file says nothing of it
};

// INVALID_ARGUMENT for a first line that starts with `# pass:` or `# symbols:` and goes on with
// anything unknown.
absl::StatusOr<CaseFile> ReadCase(std::string_view text);

// "seq=7,batch=1", and names separated by commas; shared with the command line.
absl::StatusOr<std::map<std::string, int64_t>> ParseSymbols(std::string_view text);
std::vector<std::string> SplitCommas(std::string_view text);

}  // namespace hackc::opt
