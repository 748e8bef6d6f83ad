// SPDX-License-Identifier: MIT
// Declarations that functions of every level share: runtime symbols with bounds, and buffers.
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/dtype.h"
#include "compiler/ir/expr.h"

namespace hackc::ir {

// The line of the text that something was parsed from, for messages; 0 where there was none. It
// does not count when things are compared.
struct SourceLine {
  int number = 0;
  bool operator==(const SourceLine&) const { return true; }
};

// A runtime integer with inclusive bounds. min == max is allowed and makes it static in all but
// name.
struct SymbolDecl {
  std::string name;
  int64_t min = 1;
  int64_t max = 1;
  SourceLine line = {};
  bool operator==(const SymbolDecl&) const = default;
};

enum class Access : uint8_t { kRead, kWrite, kReadWrite };
HACKC_ENUM_NAMES(Access, "read", "write", "readwrite")

// A row-major dense buffer in global memory that a function takes as a parameter.
struct BufferDecl {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<Expr> shape;  // over symbols
  Access access = Access::kRead;
  SourceLine line = {};
};
HACKC_FIELDS(BufferDecl, "buffer", name, dtype, shape, access)

}  // namespace hackc::ir
