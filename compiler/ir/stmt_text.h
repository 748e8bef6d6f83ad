// SPDX-License-Identifier: MIT
// Text of Loop, Tile and Kernel IR, both ways. Parse(Print(x)) equals x, and Print(Parse(t)) == t
// for printed t. `#` opens a comment.
//
//   hackc loop 1
//   fn row_sum "sums each row" {
//     symbol seq in 1..2048
//     read @x: bf16[seq, 64]
//     write @y: f32[seq]
//     for %m: free in seq {
//       acc %sum: sum
//       for %k: reduce in 64 {
//         %sum <- f32(@x[%m, %k])
//       }
//       @y[%m] = %sum
//     }
//   }
//
// Below Loop level a loop says how it runs (`for %n: free local [thread(32, 1), register(4)] in
// 128`), memory is declared (`alloc @t: bf16 shared[128, 64] padding 8 align 128`), a tile function
// opens with its schedule (`schedule {threads = 128, ...}`) and a kernel with its launch (`launch
// {grid = [...], threads = 128, ...}`). A guard of a statement is `@y[%m] = %v when (%m < seq)`;
// that of a load is inside, `@x[%k if (%k < 7)]`. Kinds without a form of their own print as `mma
// {shape = m16n8k16, ...}`.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hackc::ir {

std::string Print(const LoopFn& fn);
std::string Print(const TileFn& fn);
std::string Print(const KernelFn& fn);
// A statement in the path of a message: "for %m", "store @y", "mma". Paths read
// `kernel k0 / for %k / store @y: index rank 1, buffer rank 2`.
std::string PathName(const StmtNode& s);

// InvalidArgument with line, column and what was expected. Names must be declared before use; what
// else the level demands is the verifier's job.
absl::StatusOr<LoopFn> ParseLoop(std::string_view text);
absl::StatusOr<TileFn> ParseTile(std::string_view text);
absl::StatusOr<KernelFn> ParseKernel(std::string_view text);

}  // namespace hackc::ir
