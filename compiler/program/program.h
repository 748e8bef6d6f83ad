// SPDX-License-Identifier: MIT
// What a client loads, as plain structs without protobuf; proto/hackc/v1/program.proto mirrors it
// field by field and server/convert.cc is the one place that copies between them.
//
//   Program program = plan.program;
//   int64_t blocks = Evaluate(program.kernels[0].grid[0], {{"seq", 513}});
//
// Thread safety: plain values.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hackc::program {

enum class DType { kUnspecified, kFloat32, kBFloat16, kFloat16, kInt32, kInt64, kBool, kFloat64 };

// An integer formula over the runtime symbols. Absent formulas are the constant 0.
struct DimExpr {
  enum class Op { kConstant, kSymbol, kAdd, kMul, kFloorDiv, kCeilDiv, kMod, kMin, kMax };
  Op op = Op::kConstant;
  int64_t value = 0;
  std::string symbol;
  std::vector<DimExpr> args;
  bool operator==(const DimExpr&) const = default;
};

// Value of `expr` with the given symbols; unknown symbols count as 0.
int64_t Evaluate(const DimExpr& expr, const std::map<std::string, int64_t>& symbols);

struct Symbol {
  std::string name;
  int64_t min = 0;  // inclusive
  int64_t max = 0;  // inclusive
  bool operator==(const Symbol&) const = default;
};

struct Buffer {
  enum class Kind { kInput, kOutput, kWeight, kConstant, kPrepared, kWorkspace, kState };
  uint32_t id = 0;
  std::string name;
  Kind kind = Kind::kWorkspace;
  DType dtype = DType::kUnspecified;
  std::vector<DimExpr> shape;  // row-major, dense
  // kWeight, kPrepared and kState: one tensor per repetition when repeat_count > 0; "{layer}" in
  // weight_name is replaced by first_layer + iteration * layer_step.
  std::string weight_name;
  uint32_t repeat_count = 0;
  uint32_t first_layer = 0;
  uint32_t layer_step = 1;
  DimExpr offset;    // kWorkspace: bytes from the slab's start, a multiple of 256
  std::string data;  // kConstant
  bool operator==(const Buffer&) const = default;
};

struct TensorMapRecipe {
  uint32_t buffer_argument = 0;
  DType dtype = DType::kUnspecified;
  std::vector<DimExpr> dims;     // innermost first
  std::vector<DimExpr> strides;  // bytes, without the innermost
  std::vector<uint32_t> box;
  uint32_t swizzle_bytes = 0;  // 0, 32, 64, 128
};

struct Param {
  enum class Kind { kBuffer, kSymbolI32, kTensorMap };
  Kind kind = Kind::kBuffer;
  std::string name;
  uint32_t offset = 0;  // bytes in the parameter block
  uint32_t size = 0;
  uint32_t alignment = 0;  // kBuffer: alignment the pointer must have, in bytes
  bool written = false;
  std::string symbol;
  TensorMapRecipe tensor_map;
};

struct Kernel {
  std::string name;
  std::string computes;
  std::string key;     // filled in by whoever owns the cache
  std::string digest;  // of the cubin, filled in once compiled
  std::string entry;
  std::string arch;
  std::vector<Param> params;
  std::array<DimExpr, 3> grid;
  std::array<uint32_t, 3> block{1, 1, 1};
  std::array<uint32_t, 3> cluster{1, 1, 1};
  uint32_t static_shared_bytes = 0;
  uint32_t dynamic_shared_bytes = 0;
  uint32_t registers = 0;
  uint32_t spill_bytes = 0;
  uint64_t cubin_bytes = 0;
  std::vector<Symbol> valid;
  DimExpr bytes_moved;
  DimExpr operations;
};

// What a kernel does with the buffer of one of its parameters; not part of a Program.
struct BufferUse {
  DType dtype = DType::kUnspecified;
  std::vector<DimExpr> shape;
  bool read = false;
  bool written = false;
  DimExpr below;  // integers that index another buffer are below this; absent for others
};

// What the error of a kernel's result may depend on; not part of a Program.
struct Rounding {
  int64_t longest_reduction = 1;     // with symbols at their upper bounds
  DType coarsest = DType::kFloat32;  // of the types that values are rounded to
};

struct BufferRef {
  uint32_t buffer = 0;
  DimExpr offset;
};

struct Launch {
  uint32_t kernel = 0;
  std::vector<BufferRef> args;  // one for each kBuffer or kTensorMap parameter, in order
};

// A launch (repeat_count == 0) or a repetition of `steps`.
struct Step {
  Launch launch;
  uint32_t repeat_count = 0;
  std::vector<Step> steps;
};

struct EntryPoint {
  std::string name;
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> outputs;
  std::vector<Step> steps;
  DimExpr workspace_bytes;
  std::vector<Symbol> symbols;  // ranges that it is compiled for, inside those of the program
};

struct Program {
  std::string format_version;
  std::string model;
  std::string arch;
  DType dtype = DType::kUnspecified;
  std::vector<Symbol> symbols;
  std::vector<Buffer> buffers;
  std::vector<Kernel> kernels;
  std::vector<Step> prepare;
  std::vector<EntryPoint> entry_points;
};

}  // namespace hackc::program
