// SPDX-License-Identifier: MIT
#include "compiler/interp/lane_memory.h"

#include <algorithm>
#include <limits>

namespace hackc::interp {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 30;

}  // namespace

LaneMemory::LaneMemory(std::string name, ir::DType dtype, Space space, std::vector<int64_t> extents,
                       int padding, int lanes, bool traced)
    : name_(std::move(name)),
      dtype_(dtype),
      is_float_(ir::IsFloat(dtype)),
      space_(space),
      extents_(std::move(extents)),
      strides_(extents_.size()),
      lanes_(space == Space::kLane ? lanes : 1) {
  for (size_t i = extents_.size(); i-- > 0;) {
    if (extents_[i] < 0)
      Fail("@", name_, ": extent ", extents_[i], " of dimension ", i, " is negative");
    strides_[i] = count_;
    if (__builtin_mul_overflow(count_, extents_[i] + (i + 1 == extents_.size() ? padding : 0),
                               &count_) ||
        count_ > kMaxElements / lanes_) {
      Fail("@", name_, ": more than ", kMaxElements, " elements");
    }
  }
  cells_.resize(count_ * lanes_);
  states_.resize(count_ * lanes_, State::kPoison);
  if (traced && space_ != Space::kLane) traces_.resize(count_);
}

void LaneMemory::FailOffset(const int64_t* indices, size_t rank, int width) const {
  if (rank != extents_.size()) {
    Fail("@", name_, ": index rank ", rank, ", buffer rank ", extents_.size());
  }
  size_t i = 0;  // the first that is outside
  while (indices[i] >= 0 && indices[i] + (i + 1 == rank ? width - 1 : 0) < extents_[i]) ++i;
  Fail("@", name_, ": index ", indices[i],
       width > 1 ? Cat(" (", width, " elements)") : std::string(), " of dimension ", i,
       " is outside extent ", extents_[i]);
}

void LaneMemory::CheckAligned(int64_t offset, int64_t bytes) const {
  const int64_t address = byte_base_ + offset * ir::SizeOf(dtype_);
  if (address % bytes != 0) {
    Fail(ElementText(offset), " lies at byte ", address, ", which is not a multiple of ", bytes);
  }
}

std::string LaneMemory::ElementText(int64_t offset) const {
  std::string text = Cat("@", name_, "[");
  for (size_t i = 0; i < extents_.size(); ++i) {
    if (i) text += ", ";
    AppendTo(text, offset / strides_[i]);
    offset %= strides_[i];
  }
  return text + "]";
}

void LaneMemory::TraceWarps(int threads) {
  threads_ = threads;
  if (!traces_.empty()) {
    readers_.resize(count_);
    adders_.resize(count_);
  }
  if (space_ == Space::kLane) touched_.assign(cells_.size(), -1);
}

// Whether an earlier access is by somebody else with nothing that orders them.
bool LaneMemory::Unordered(int lane, int block, int epoch, const Accessor& by) const {
  if (lane == kNone) return false;
  if (block != by.block) return true;
  if (!by.seen) return epoch == by.epoch && lane != by.lane;
  // Two works of one unit may overlap; a thread goes in order.
  return (lane != by.lane || lane >= threads_) && epoch > by.seen[lane];
}

std::string LaneMemory::Who(int lane, int block) const {
  std::string text = lane == kMany                      ? "several threads"
                     : threads_ == 0 || lane < threads_ ? Cat("thread ", lane)
                     : lane < threads_ + threads_ / 128
                         ? Cat("wgmma of warpgroup ", lane - threads_)
                     : lane < threads_ + threads_ / 128 + 2 ? std::string("a bulk store")
                                                            : std::string("a bulk load");
  return block == kMany ? text + " of several blocks" : Cat(text, " of block ", block);
}

void LaneMemory::Race(int64_t offset, const char* what, int lane, int block,
                      const Accessor& by) const {
  Fail(ElementText(offset), ": race: ", what, " by ", Who(by.lane, by.block), " after ",
       Who(lane, block), " with no barrier between");
}

// Units see what threads wrote only behind a proxy fence.
void LaneMemory::CheckFenced(int64_t offset, const Past& write, const Accessor& by) const {
  if (!by.fenced || write.lane < 0 || write.lane >= threads_) return;
  if (write.block == by.block && write.epoch > by.fenced[write.lane]) {
    Fail(ElementText(offset), ": ", Who(by.lane, by.block), " after a write by ",
         Who(write.lane, write.block), " with no proxy_fence between");
  }
}

void LaneMemory::CheckAfter(const PastOf& past, int64_t offset, const char* what,
                            const Accessor& by) const {
  for (const Past& access : past[offset]) {
    if (Unordered(access.lane, access.block, access.epoch, by))
      Race(offset, what, access.lane, access.block, by);
    if (&past == &adders_) CheckFenced(offset, access, by);
  }
}

void LaneMemory::Note(std::vector<Past>& past, const Accessor& by) {
  for (Past& access : past) {
    if (access.lane != by.lane || access.block != by.block) continue;
    access.epoch = by.epoch;
    return;
  }
  past.push_back({by.lane, by.block, by.epoch});
}

void LaneMemory::FailRead(int64_t offset, const Accessor& by) const {
  const bool in_flight = states_[Slot(offset, by)] == State::kInFlight;
  Fail(ElementText(offset), " is read by thread ", by.lane,
       !in_flight               ? " before it was written"
       : space_ == Space::kLane ? " while a wgmma may still write it"
                                : " while an asynchronous copy into it is in flight");
}

void LaneMemory::TraceRead(int64_t offset, const Accessor& by) {
  Trace& trace = traces_[offset];
  if (Unordered(trace.writer, trace.writer_block, trace.writer_epoch, by))
    Race(offset, "read of a written element", trace.writer, trace.writer_block, by);
  CheckFenced(offset, {trace.writer, trace.writer_block, trace.writer_epoch}, by);
  if (threads_ != 0) {
    CheckAfter(adders_, offset, "read of a written element", by);
    return Note(readers_[offset], by);
  }
  const bool again = trace.reader_epoch == by.epoch && trace.reader != by.lane;
  trace.reader = again ? kMany : by.lane;
  trace.reader_epoch = by.epoch;
  trace.reader_block =
      trace.reader_block == kNone || trace.reader_block == by.block ? by.block : kMany;
}

void LaneMemory::CheckWrite(int64_t offset, const Accessor& by) {
  if (access_ == ir::Access::kRead) Fail("@", name_, " is written but declared `read`");
  if (states_[Slot(offset, by)] == State::kInFlight) {
    Fail(ElementText(offset), " is written by thread ", by.lane,
         " while an asynchronous copy into it is in flight");
  }
  if (states_[Slot(offset, by)] == State::kHeld) {
    Fail(ElementText(offset), " is written by thread ", by.lane,
         " while a wgmma may still read it");
  }
  if (traces_.empty()) return;
  Trace& trace = traces_[offset];
  const bool both_atomic = trace.writer_atomic && by.atomic;
  const bool unordered = Unordered(trace.writer, trace.writer_block, trace.writer_epoch, by);
  if (unordered && !both_atomic) Race(offset, "second write", trace.writer, trace.writer_block, by);
  CheckFenced(offset, {trace.writer, trace.writer_block, trace.writer_epoch}, by);
  if (Unordered(trace.reader, trace.reader_block, trace.reader_epoch, by))
    Race(offset, "write of a read element", trace.reader, trace.reader_block, by);
  if (threads_ != 0) {
    CheckAfter(readers_, offset, "write of a read element", by);
    readers_[offset].clear();
    if (by.atomic) {
      Note(adders_[offset], by);
    } else {
      CheckAfter(adders_, offset, "second write", by);
      adders_[offset].clear();
    }
  }
  trace.writer_block = both_atomic && trace.writer_block != by.block ? kMany : by.block;
  trace.writer = both_atomic && unordered && threads_ == 0 ? kMany : by.lane;
  trace.writer_epoch = by.epoch;
  trace.writer_atomic = by.atomic;
}

void LaneMemory::Write(int64_t offset, Cell value, const Accessor& by) {
  CheckWrite(offset, by);
  const int64_t slot = Slot(offset, by);
  cells_[slot] = value;
  states_[slot] = State::kDefined;
  if (!touched_.empty()) touched_[slot] = by.fences;
}

void LaneMemory::AtomicAdd(int64_t offset, double value, bool single, Accessor by) {
  by.atomic = true;
  const int64_t slot = Slot(offset, by);
  if (states_[slot] < State::kDefined) FailRead(offset, by);
  CheckWrite(offset, by);
  const double sum = cells_[slot].f + value;
  cells_[slot].f = single ? static_cast<float>(sum) : sum;
}

Cell LaneMemory::HoldFragment(int64_t offset, const Accessor& by, bool written, bool reset) {
  const int64_t slot = Slot(offset, by);
  State& state = states_[slot];
  const bool chained = written && state == State::kInFlight;
  if (state < State::kDefined && !chained && !reset) FailRead(offset, by);
  if (written && state == State::kHeld)
    Fail(ElementText(offset), " is accumulated into while a wgmma may still read it");
  if (!chained && state != State::kHeld && touched_[slot] >= by.fences) {
    Fail(ElementText(offset), " was touched by thread ", by.lane, " after its last wgmma_fence");
  }
  state = written ? State::kInFlight : State::kHeld;
  return cells_[slot];
}

void LaneMemory::Launch(int64_t offset, const Accessor& by) {
  CheckWrite(offset, by);
  states_[Slot(offset, by)] = State::kInFlight;
}

void LaneMemory::Land(int64_t offset, Cell value, const Accessor& by) {
  const int64_t slot = Slot(offset, by);
  cells_[slot] = value;
  states_[slot] = State::kDefined;
  if (!traces_.empty()) traces_[offset].writer_epoch = by.epoch;
}

void LaneMemory::Poison(int lane) {
  for (int64_t i = lane; i < static_cast<int64_t>(states_.size()); i += lanes_)
    states_[i] = State::kPoison;
}

void LaneMemory::Poison() { std::fill(states_.begin(), states_.end(), State::kPoison); }

void LaneMemory::StartBlock() {
  Poison();
  std::fill(traces_.begin(), traces_.end(), Trace());
  for (PastOf* past : {&readers_, &adders_}) {
    for (std::vector<Past>& of_one : *past) of_one.clear();
  }
  std::fill(touched_.begin(), touched_.end(), -1);
}

void LaneMemory::Fill(const TensorData& data) {
  for (int64_t i = 0; i < count_; ++i) {
    if (is_float_) {
      cells_[i].f = data.values[i];
    } else {
      cells_[i].i = static_cast<int64_t>(data.values[i]);
    }
  }
  std::fill(states_.begin(), states_.end(), State::kDefined);
}

TensorData LaneMemory::Take() {
  TensorData data{dtype_, extents_, std::vector<double>(count_)};
  for (int64_t i = 0; i < count_; ++i) {
    const double poison = is_float_ ? std::numeric_limits<double>::quiet_NaN() : 0;
    const double value = is_float_ ? cells_[i].f : static_cast<double>(cells_[i].i);
    data.values[i] = states_[i] == State::kPoison ? poison : value;
  }
  return data;
}

}  // namespace hackc::interp
