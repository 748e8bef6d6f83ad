// SPDX-License-Identifier: MIT
// What one run of a Loop, Tile or Kernel function is given and gives back.
//
//   FunctionRun run;
//   run.symbols["seq"] = 7;
//   run.buffers["x"] = x;                       // buffers that are read
//   HACKC_RETURN_IF_ERROR(RunLoop(fn, run));    // loop_interpreter.h
//   run.buffers["y"];                           // buffers that are written
//
// Thread safety: a plain value.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "compiler/interp/scalar_ops.h"
#include "compiler/interp/tensor_data.h"

namespace hackc::interp {

struct FunctionRun {
  std::map<std::string, int64_t> symbols;
  // By buffer name. What is declared `read` or `readwrite` must be here, in its dtype and shape.
  // What is declared `write` is made by the run; its elements that were never written are NaN (0
  // for integers).
  std::map<std::string, TensorData> buffers;
  Arithmetic arithmetic = Arithmetic::kExact;
};

}  // namespace hackc::interp
