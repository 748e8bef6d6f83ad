// SPDX-License-Identifier: MIT
// One named array as the statement interpreters see it: global, shared, or one copy for each lane
// (registers). Every access is checked: bounds of each index, alignment, reads of what was never
// written, copies still in flight, and races between threads.
//
// Two accesses race when they come from different threads, at least one writes, and nothing orders
// them: a barrier orders threads of one block; nothing orders blocks. The interpreter runs a fixed
// order, so races are found from traces of each element, not from wrong values.
//
// Thread safety: none; one memory belongs to one running interpreter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/interp/tensor_data.h"
#include "compiler/ir/stmt.h"
#include "compiler/support/cat.h"

namespace hackc::interp {

// Thrown inside an interpreter, turned into a status with the IR path at its edge.
struct Failure {
  std::string message;
};
template <typename... T>
[[noreturn]] void Fail(const T&... parts) {
  throw Failure{Cat(parts...)};
}

union Cell {
  double f;
  int64_t i;
};

// Who accesses, and when. Where all threads run in step, `epoch` grows with every barrier and every
// block. Where warps run on their own, it is the clock of a thread or of a unit beside the threads
// (warp_block.h), and `seen` says what happened before.
struct Accessor {
  int lane = 0;
  int block = 0;
  int epoch = 0;
  const int* seen = nullptr;    // by lane: its last epoch that happened before this access
  const int* fenced = nullptr;  // the same behind a proxy fence; only for accesses of units
  bool atomic = false;
  int fences = 0;  // wgmma fences of its warp so far
};

class LaneMemory {
 public:
  enum class Space : uint8_t { kGlobal, kShared, kLane };

  // `traced`: look for races. `lanes` copies of kLane memory.
  LaneMemory(std::string name, ir::DType dtype, Space space, std::vector<int64_t> extents,
             int padding, int lanes, bool traced);

  const std::string& name() const { return name_; }
  ir::DType dtype() const { return dtype_; }
  bool is_float() const { return is_float_; }
  Space space() const { return space_; }
  const std::vector<int64_t>& extents() const { return extents_; }

  int64_t count() const { return count_; }
  int64_t byte_base() const { return byte_base_; }

  void set_access(ir::Access access) { access_ = access; }
  // Warps run on their own: `threads` of a block, lanes from there on are units.
  void TraceWarps(int threads);
  void set_byte_base(int64_t base) { byte_base_ = base; }

  // Element offset of `indices`, after checking each against its extent and `width` elements
  // against the innermost one.
  int64_t Offset(const int64_t* indices, size_t rank, int width = 1) const {
    if (rank != extents_.size()) FailOffset(indices, rank, width);
    int64_t offset = 0;
    for (size_t i = 0; i < rank; ++i) {
      const int64_t last = indices[i] + (i + 1 == rank ? width - 1 : 0);
      if (indices[i] < 0 || last >= extents_[i]) FailOffset(indices, rank, width);
      offset += indices[i] * strides_[i];
    }
    return offset;
  }
  // Fails unless element `offset` starts at a multiple of `bytes`.
  void CheckAligned(int64_t offset, int64_t bytes) const;

  Cell Read(int64_t offset, const Accessor& by) {
    const int64_t slot = Slot(offset, by);
    if (states_[slot] < State::kDefined) FailRead(offset, by);
    if (!traces_.empty()) TraceRead(offset, by);
    if (!touched_.empty()) touched_[slot] = by.fences;
    return cells_[slot];
  }
  void Write(int64_t offset, Cell value, const Accessor& by);
  void AtomicAdd(int64_t offset, double value, bool single, Accessor by);
  // cp.async: from here to Land the element belongs to the copy, nobody else may touch it.
  void Launch(int64_t offset, const Accessor& by);
  void Land(int64_t offset, Cell value, const Accessor& by);

  // Registers that a wgmma of this lane uses: from HoldFragment to Settle nobody else may write
  // them, nor read them when they are `written`. Fails where a fence lacks. `reset`: may be poison.
  Cell HoldFragment(int64_t offset, const Accessor& by, bool written, bool reset);
  void SetFragment(int64_t offset, Cell value, const Accessor& by) {
    cells_[Slot(offset, by)] = value;
  }
  void Settle(int64_t offset, const Accessor& by) { states_[Slot(offset, by)] = State::kDefined; }

  void Poison();          // everything to never-written; traces stay
  void Poison(int lane);  // the registers of one lane
  void StartBlock();      // shared memory of a new block: never written, never touched
  void Fill(const TensorData& data);
  TensorData Take();  // what was never written is NaN, or 0 for integers

 private:
  enum class State : uint8_t { kPoison, kInFlight, kDefined, kHeld };
  static constexpr int kNone = -1, kMany = -2;
  struct Trace {
    int writer = kNone, writer_block = kNone, writer_epoch = kNone;
    bool writer_atomic = false;
    int reader = kNone, reader_block = kNone, reader_epoch = kNone;
  };
  struct Past {  // access
    int lane, block, epoch;
  };
  using PastOf = std::vector<std::vector<Past>>;  // by element

  int64_t Slot(int64_t offset, const Accessor& by) const {
    return space_ == Space::kLane ? offset * lanes_ + by.lane : offset;
  }
  [[noreturn]] void FailOffset(const int64_t* indices, size_t rank, int width) const;
  [[noreturn]] void FailRead(int64_t offset, const Accessor& by) const;
  void TraceRead(int64_t offset, const Accessor& by);
  std::string ElementText(int64_t offset) const;
  void CheckWrite(int64_t offset, const Accessor& by);
  bool Unordered(int lane, int block, int epoch, const Accessor& by) const;
  // The access comes after all of them.
  void CheckAfter(const PastOf& past, int64_t offset, const char* what, const Accessor& by) const;
  static void Note(std::vector<Past>& past, const Accessor& by);
  void CheckFenced(int64_t offset, const Past& write, const Accessor& by) const;
  std::string Who(int lane, int block) const;
  [[noreturn]] void Race(int64_t offset, const char* what, int lane, int block,
                         const Accessor& by) const;

  std::string name_;
  ir::DType dtype_;
  bool is_float_;
  Space space_;
  ir::Access access_ = ir::Access::kReadWrite;
  std::vector<int64_t> extents_, strides_;
  int64_t count_ = 1;
  int lanes_;
  int64_t byte_base_ = 0;
  std::vector<Cell> cells_;
  std::vector<State> states_;
  std::vector<Trace> traces_;
  int threads_ = 0;           // not 0: warps run on their own
  PastOf readers_;            // then: since the last write
  PastOf adders_;             // then: atomic writes since the last other write
  std::vector<int> touched_;  // then, of registers: wgmma fences before the last access
};

}  // namespace hackc::interp
