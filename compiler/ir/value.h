// SPDX-License-Identifier: MIT
// What Graph and Tensor IR share: named values, where they come from, and segments. Both are flat
// lists of operations over values; a segment is a list that runs `count` times in a row (the
// layers), so that the cost of compiling does not grow with depth.
//
//   segment layers: repeat 28 from 0 step 1 carry (%x = %embedded) {
//     weight %w: bf16[3584] "model.layers.{layer}.input_layernorm.weight"
//     ...
//     yield (%x3)
//   } -> (%hidden)
//
// Iteration i of a segment reads weights with "{layer}" replaced by first_layer + i * layer_step.
// Where layers alternate between kinds, one segment holds one period and layer_step is its length;
// "{layer+1}" is the second layer of the period. Thread safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/buffer.h"

namespace hackc::ir {

// A value's name, dtype and shape (over symbols only).
struct ValueType {
  DType dtype = DType::kF32;
  std::vector<Expr> shape;
};

// A value that no operation makes.
struct SourceDecl {
  enum class Kind : uint8_t {
    kInput,     // given at each run
    kWeight,    // a tensor of the checkpoint, `weight_name`
    kConstant,  // `data`, row-major, rounded to dtype
    kState,     // lives across runs and is updated in place (key/value cache)
  };
  std::string name;
  Kind kind = Kind::kInput;
  ValueType type;
  std::string weight_name;
  std::vector<double> data;
  SourceLine line = {};
};
HACKC_ENUM_NAMES(SourceDecl::Kind, "input", "weight", "constant", "state")

// A value that enters iteration 0 as `initial` (outside) and is called `name` inside.
struct Carry {
  std::string name;
  std::string initial;
};

// A segment without its operations, which a pass makes others of.
struct SegmentFrame {
  std::string name;
  int count = 1;
  int first_layer = 0;
  int layer_step = 1;
  std::vector<Carry> carries;
  std::vector<SourceDecl> sources;  // weights read inside, "{layer}" in their names
  std::vector<std::string> yields;  // inside values that become the carries of the next iteration
  // Names outside of the last iteration's yields; unique in the module.
  std::vector<std::string> results;
};
template <typename Op>
struct Segment : SegmentFrame {
  std::vector<Op> ops = {};
  SourceLine line = {}, yield_line = {};
};

// A whole model. Value names are unique over the module, segments included. Values made in a
// segment are seen only there; later segments see sources, and earlier segments' results. A segment
// with count == 1 and no carries may publish any of its values through yields/results.
template <typename Op>
struct Module {
  std::string name;
  std::vector<SymbolDecl> symbols;  // batch, seq, past
  std::vector<SourceDecl> sources;
  std::vector<Segment<Op>> segments;
  std::vector<std::string> outputs;  // results returned to the caller
  SourceLine line = {};              // of the outputs
};

}  // namespace hackc::ir
