// SPDX-License-Identifier: MIT
// A text of IR that says how it is to be run, and may hold what should come of it. Golden tests are
// such files.
//
//   # pass: split_axes  kind: edge  symbols: seq=5  seed: 1  target: sm_90a
//   hackc loop 1
//   ...
//   # ---- expected
//   hackc tile 1
//   ...
//
// Every part of the first line may be missing, the line itself too; `pass` may list several, as in
// `a,b`. `kind` is what a golden case shows: what the pass `does`, what it `leaves` alone, or an
// `edge` of sizes. Replay files (server/replay.h) are such texts too: `verify: yes` is --verify,
// the pass `emit_cuda` is --emit=cuda, and some names are no pass but a call of compile.h:
// `program` on Graph IR or on a config.json with what goes with it (`dtype: float32  batch: 1..4
// seq: 1..16  past: 0..64  page_size: 16  last_logits: yes  layers: 2`), `reference` on Loop IR,
// and `nvrtc  entry: NAME` on CUDA text.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/compile.h"

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
  CompileRequest request;  // without config and arch
  std::string input;       // the first line included, so that lines keep their numbers
  std::string expected;    // empty: the file says nothing of it
};

// INVALID_ARGUMENT for a first line that starts with `# pass:` or `# symbols:` and goes on with
// anything unknown.
absl::StatusOr<CaseFile> ReadCase(std::string_view text);

// "seq=7,batch=1", and names separated by commas; shared with the command line.
absl::StatusOr<std::map<std::string, int64_t>> ParseSymbols(std::string_view text);
std::vector<std::string> SplitCommas(std::string_view text);

}  // namespace hackc::opt
