// SPDX-License-Identifier: MIT
#include "compiler/interp/warp_block.h"
#include "compiler/interp/warp_matrix.h"
#include "compiler/ir/wgmma_layout.h"

namespace hackc::interp {
namespace {

// Element (row, k) of an operand in shared memory, as the unit `by` reads it.
double SharedElement(const SharedOperand& operand, const ir::OperandLayout& layout, int row, int k,
                     const Accessor& by) {
  LaneMemory& memory = operand.memory;
  const int size = ir::SizeOf(memory.dtype());
  const int64_t start = memory.byte_base() + operand.offset * size;
  const int64_t byte = ir::Swizzle(start + ir::OperandByte(layout, size, row, k), layout.swizzle);
  const int64_t offset = (byte - memory.byte_base()) / size;
  if (byte < memory.byte_base() || offset >= memory.count())
    Fail("wgmma reads byte ", byte, " of shared memory, outside @", memory.name());
  return memory.Read(offset, by).f;
}

}  // namespace

void WgmmaOfWarpgroup(const ir::Wgmma& n, int group, SharedOperand c, SharedOperand a,
                      SharedOperand b, bool reset, LaneState& state) {
  WarpBlock& warps = *state.warps;
  const Order order = warps.SeenByAll(group);
  const Accessor by = warps.NextWgmma(group, state.block, order);
  const bool tf32 = n.dtype == ir::DType::kF32,
             shared_a = a.memory.space() != LaneMemory::Space::kLane;
  const bool truncate = tf32 && state.arithmetic == Arithmetic::kHardware;
  const auto operand = [&](double value) { return truncate ? ToTf32(value) : value; };
  const int depth = ir::DepthOf(n), a_count = tf32 ? 4 : 8;
  const MmaLayout layout(tf32 ? ir::MmaShape::kM16N8K8 : ir::MmaShape::kM16N8K16);
  for (const SharedOperand& shared : {a, b}) {
    if (shared.memory.space() == LaneMemory::Space::kShared)
      shared.memory.CheckAligned(shared.offset, 16);
  }

  std::vector<double> left(64 * depth), right(depth * n.n);
  for (int k = 0; k < depth; ++k) {
    for (int column = 0; column < n.n; ++column)
      right[k * n.n + column] = operand(SharedElement(b, ir::LayoutOfB(n), column, k, by));
    for (int row = 0; shared_a && row < 64; ++row)
      left[row * depth + k] = operand(SharedElement(a, ir::LayoutOfA(n), row, k, by));
  }
  for (int warp = 4 * group; warp < 4 * group + 4; ++warp) {
    for (int lane = 0; lane < 32 && !shared_a; ++lane) {
      const Accessor own = state.At(32 * warp + lane);
      for (int i = 0; i < a_count; ++i) {
        const MmaLayout::Position p = layout.A(lane, i);
        left[(warp % 4 * 16 + p.row) * depth + p.column] =
            operand(a.memory.HoldFragment(a.offset + i, own, false, false).f);
      }
    }
    if (!shared_a) warps.Hold(warp, {&a.memory, a.offset, a_count});
    for (int lane = 0; lane < 32; ++lane) {
      const Accessor own = state.At(32 * warp + lane);
      for (int i = 0; i < n.n / 2; ++i) {
        MmaLayout::Position p = MmaLayout::C(lane, i % 4);
        p.row += warp % 4 * 16;
        p.column += i / 4 * 8;
        const Cell before = c.memory.HoldFragment(c.offset + i, own, true, reset);
        double sum = reset ? 0 : before.f;
        for (int k = 0; k < depth; ++k) sum += left[p.row * depth + k] * right[k * n.n + p.column];
        const Cell after{.f = RoundResult(state.arithmetic, ir::DType::kF32, sum)};
        c.memory.SetFragment(c.offset + i, after, own);
      }
    }
    warps.Hold(warp, {&c.memory, c.offset, n.n / 2});
  }
}

}  // namespace hackc::interp
