// SPDX-License-Identifier: MIT
// Loop IR to Loop IR: a long reduction with too few results to fill the machine becomes two
// launches. The first reduces parts of the axis, one for each coordinate of a new axis; the second
// combines them and goes on with what followed.
//
//   for %b { for %h in 28 {
//     acc %o: softmax_sum[128]; for %t: reduce in past + 1 { ... }  for %e { @y = %o[e] } } }
// becomes
//   for %b { for %g in 4 { for %part in 33 { for %r in 7 {
//     acc %o: softmax_sum[128]; acc %lse: log_sum_exp
//     for %t: reduce in max(min(C, past + 1 - part * C), 0) { ... at part * C + t }
//     for %e { @parts = %o[e] }  @scores = %lse } } } }
//   for %b { for %h in 28 {
//     acc %o: softmax_sum[128]; for %part: reduce in 33 { for %e { %o[e] <- @scores, @parts } }
//     for %e { @y = %o[e] } } }
//
// The number of parts is fixed and their length C follows from the symbols, so grids and shapes do
// not depend on `past`. Parts are multiples of kPartUnit long, and may be empty: such a part is the
// monoid's identity. Where the axis' loads use a free axis only through its quotient (28 query
// heads, 4 of keys), that axis is taken apart: the rows that share what is loaded stand inside.
// Gate: one block would read at least `least_bytes` alone, and the parts' bytes, written and read,
// are at most half of those that the reduction reads; fewer parts than would fill the machine where
// that needs it. Thread safety: pure function.
#pragma once

#include "compiler/ir/loop_module.h"

namespace hackc::passes {

struct SplitOptions {
  int blocks = 132;  // that fill the machine
  int64_t least_bytes =
      1 << 17;  // read by one block of the kernel as it is; less is not worth a launch
};

ir::LoopModule SplitReductions(const ir::LoopModule& module, const SplitOptions& options);

}  // namespace hackc::passes
