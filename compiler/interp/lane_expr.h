// SPDX-License-Identifier: MIT
// Expressions with their names resolved to slots, evaluated for many lanes (threads) at once: one
// lane for Loop and Tile IR, every thread of a block for Kernel IR. What does not differ between
// lanes is computed once.
//
//   std::unique_ptr<LaneExpr> e = LaneExpr::Compile(expr, names);
//   Values v = e->Eval(state, active);
//   v[lane].f
//
// Thread safety: none; results live in the expression until it is evaluated again.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/interp/lane_memory.h"
#include "compiler/interp/scalar_ops.h"
#include "compiler/ir/expr.h"
#include "compiler/ir/monoid.h"

namespace hackc::interp {

using Active = std::vector<int>;  // lanes that take part, ascending

inline constexpr size_t kMaxRank = 8;

// One value for each lane; stride 0 where all lanes share it.
struct Values {
  const Cell* data;
  int stride;
  Cell operator[](int lane) const { return data[lane * stride]; }
};

// A reduction state for each lane and coordinate.
struct LaneAccumulator {
  std::string name;
  ir::Monoid monoid;
  std::vector<int64_t> extents;
  int64_t count = 1;
  int components = 1;
  std::vector<double> states;  // [lane][coordinate][component]

  double* State(int lane, int64_t coordinate) {
    return &states[(lane * count + coordinate) * components];
  }
  int64_t Offset(const int64_t* indices, size_t rank) const;  // checked
};

class WarpBlock;

// Everything that running code reads and changes.
struct LaneState {
  int lanes = 1;
  bool traced = false;  // look for races
  Arithmetic arithmetic = Arithmetic::kExact;
  std::vector<std::vector<Cell>> slots;  // one cell if uniform, otherwise one for each lane
  std::deque<LaneMemory> memories;
  std::deque<LaneAccumulator> accumulators;
  int block = 0;
  int epoch = 0;
  WarpBlock* warps = nullptr;  // present where each warp runs on its own

  Accessor At(int lane) const { return warps ? AtWarp(lane) : Accessor{lane, block, epoch}; }
  Accessor AtWarp(int lane) const;
};

// What names stand for while code is compiled.
struct Names {
  struct Binding {
    enum class Kind : uint8_t { kSlot, kMemory, kAccumulator } kind = Kind::kSlot;
    int index = 0;
    bool uniform = false;
  };
  std::unordered_map<std::string, Binding> bindings;
  std::map<std::string, int64_t> symbols;
  int builtin_slots[4] = {};  // by BuiltinKind

  const Binding& Find(const std::string& name) const;  // fails when unknown
  LaneMemory& Memory(LaneState& state, const std::string& name) const;
};

class LaneExpr {
 public:
  static std::unique_ptr<LaneExpr> Compile(const ir::Expr& e, const Names& names,
                                           const LaneState& state);

  Values Eval(LaneState& state, const Active& active);
  bool uniform() const { return uniform_; }
  bool is_float() const { return is_float_; }

 private:
  void EvalFloatUnary(LaneState& state, const Active& active);
  void EvalIntUnary(LaneState& state, const Active& active);
  void EvalFloatBinary(LaneState& state, const Active& active);
  void EvalIntBinary(LaneState& state, const Active& active);
  void EvalCompare(LaneState& state, const Active& active);
  void EvalLogic(LaneState& state, const Active& active);
  void EvalSelect(LaneState& state, const Active& active);
  void EvalCast(LaneState& state, const Active& active);
  void EvalLoad(LaneState& state, const Active& active);
  void EvalShuffle(LaneState& state, const Active& active);

  // Fills result_ for the active lanes; null for a constant or a slot.
  void (LaneExpr::*eval_)(LaneState& state, const Active& active) = nullptr;
  bool slot_ = false;
  bool accumulator_ = false;  // index_ is one, not a memory
  ir::UnaryOp unary_{};
  ir::BinaryOp binary_{};
  ir::ShuffleKind shuffle_{};
  ir::DType dtype_ = ir::DType::kI32;
  bool is_float_ = false;
  bool uniform_ = false;
  int index_ = 0;  // slot, memory or accumulator
  std::vector<std::unique_ptr<LaneExpr>> children_;
  std::unique_ptr<LaneExpr> guard_;
  std::vector<Cell> result_;
};

// Lanes of `active` where the bool `condition` is true: `active` itself when it is null or true
// everywhere, otherwise `storage`.
const Active& Filter(LaneExpr* condition, LaneState& state, const Active& active, Active& storage);

// The warp's first lane, for each warp of `active`; fails unless every warp takes part as a whole.
std::vector<int> WholeWarps(const Active& active, const char* what);

}  // namespace hackc::interp
