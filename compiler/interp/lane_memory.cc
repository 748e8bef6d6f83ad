// SPDX-License-Identifier: MIT
#include "compiler/interp/lane_memory.h"

#include <algorithm>
#include <limits>

namespace hackc::interp {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 30;

// Whether an earlier access is by somebody else with no barrier between; lane -1: there was none.
bool Races(int lane, int block, int epoch, const Accessor& by) {
  return lane != -1 && (block != by.block || (epoch == by.epoch && lane != by.lane));
}

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

void LaneMemory::Race(int64_t offset, const char* what, int lane, int block,
                      const Accessor& by) const {
  auto who = [](int lane, int block) {
    std::string text = lane == kMany ? "several threads" : Cat("thread ", lane);
    return block == kMany ? text + " of several blocks" : Cat(text, " of block ", block);
  };
  Fail(ElementText(offset), ": race: ", what, " by ", who(by.lane, by.block), " after ",
       who(lane, block), " with no barrier between");
}

void LaneMemory::FailRead(int64_t offset, const Accessor& by) const {
  const bool in_flight = states_[Slot(offset, by)] == State::kInFlight;
  Fail(ElementText(offset), " is read by thread ", by.lane,
       in_flight ? " while an asynchronous copy into it is in flight" : " before it was written");
}

void LaneMemory::TraceRead(int64_t offset, const Accessor& by) {
  Trace& trace = traces_[offset];
  if (Races(trace.writer, trace.writer_block, trace.writer_epoch, by))
    Race(offset, "read of a written element", trace.writer, trace.writer_block, by);
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
  if (traces_.empty()) return;
  Trace& trace = traces_[offset];
  if (Races(trace.writer, trace.writer_block, trace.writer_epoch, by))
    Race(offset, "second write", trace.writer, trace.writer_block, by);
  if (Races(trace.reader, trace.reader_block, trace.reader_epoch, by))
    Race(offset, "write of a read element", trace.reader, trace.reader_block, by);
  trace.writer = by.lane;
  trace.writer_block = by.block;
  trace.writer_epoch = by.epoch;
}

void LaneMemory::Write(int64_t offset, Cell value, const Accessor& by) {
  CheckWrite(offset, by);
  const int64_t slot = Slot(offset, by);
  cells_[slot] = value;
  states_[slot] = State::kDefined;
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

void LaneMemory::Poison() { std::fill(states_.begin(), states_.end(), State::kPoison); }

void LaneMemory::StartBlock() {
  Poison();
  std::fill(traces_.begin(), traces_.end(), Trace());
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
