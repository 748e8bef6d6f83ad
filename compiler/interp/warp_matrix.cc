// SPDX-License-Identifier: MIT
#include "compiler/interp/warp_matrix.h"

#include <cstring>

namespace hackc::interp {
double ToTf32(double value) {
  float f = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &f, sizeof(bits));
  bits &= ~uint32_t{0x1fff};
  std::memcpy(&f, &bits, sizeof(bits));
  return f;
}

MmaLayout::MmaLayout(ir::MmaShape shape) {
  const bool wide = shape == ir::MmaShape::kM16N8K16;
  k = wide ? 16 : 8;
  a_count = wide ? 8 : 4;
  b_count = wide ? 4 : 2;
}

MmaLayout::Position MmaLayout::A(int lane, int i) const {
  const int g = lane / 4, t = lane % 4;
  if (k == 16) return {g + 8 * (i / 2 % 2), 2 * t + i % 2 + 8 * (i / 4)};
  return {g + 8 * (i % 2), t + 4 * (i / 2)};
}

MmaLayout::Position MmaLayout::B(int lane, int i) const {
  const int g = lane / 4, t = lane % 4;
  if (k == 16) return {2 * t + i % 2 + 8 * (i / 2), g};
  return {t + 4 * i, g};
}

MmaLayout::Position MmaLayout::C(int lane, int i) {
  return {lane / 4 + 8 * (i / 2), 2 * (lane % 4) + i % 2};
}

void LoadMatrixOfWarp(const ir::LoadMatrix& n, int first, LaneMemory& source,
                      const std::vector<int64_t>& rows, LaneMemory& target,
                      const std::vector<int64_t>& to, LaneState& state) {
  if (n.count != 1 && n.count != 2 && n.count != 4) Fail("load_matrix of ", n.count, " matrices");
  if (source.space() != LaneMemory::Space::kShared)
    Fail("load_matrix from @", source.name(), ", not shared");
  if (ir::SizeOf(source.dtype()) != 2 || target.dtype() != source.dtype()) {
    Fail("load_matrix moves 16-bit elements of one dtype, got ", ir::Name(source.dtype()), " and ",
         ir::Name(target.dtype()));
  }
  for (int i = 0; i < n.count; ++i) {
    Cell matrix[8][8];
    for (int row = 0; row < 8; ++row) {
      const int lane = first + 8 * i + row;
      source.CheckAligned(rows[lane], 16);
      for (int column = 0; column < 8; ++column) {
        matrix[row][column] = source.Read(rows[lane] + column, state.At(lane));
      }
    }
    for (int l = 0; l < 32; ++l) {
      if (to[first + l] % 2 != 0)
        Fail("load_matrix into odd element ", to[first + l], " of @", target.name());
      for (int j = 0; j < 2; ++j) {
        const int outer = l / 4, inner = 2 * (l % 4) + j;
        const Cell value = n.transposed ? matrix[inner][outer] : matrix[outer][inner];
        target.Write(to[first + l] + 2 * i + j, value, state.At(first + l));
      }
    }
  }
}

void MmaOfWarp(const ir::Mma& n, const MmaLayout& layout, int first, Fragment c, Fragment a,
               Fragment b, LaneState& state) {
  const bool tf32 = n.dtype == ir::DType::kF32;
  if (tf32 != (n.shape == ir::MmaShape::kM16N8K8))
    Fail("mma of ", ir::Name(n.dtype), " with k = ", layout.k);
  if (a.memory.dtype() != n.dtype || b.memory.dtype() != n.dtype ||
      c.memory.dtype() != ir::DType::kF32) {
    Fail("mma of ", ir::Name(n.dtype), " on fragments of ", ir::Name(a.memory.dtype()), ", ",
         ir::Name(b.memory.dtype()), " and ", ir::Name(c.memory.dtype()));
  }
  const bool truncate = tf32 && state.arithmetic == Arithmetic::kHardware;
  auto read = [&](Fragment fragment, int lane, int i) {
    return fragment.memory.Read(fragment.offsets[first + lane] + i, state.At(first + lane)).f;
  };
  auto operand = [&](Fragment fragment, int lane, int i) {
    const double value = read(fragment, lane, i);
    return truncate ? ToTf32(value) : value;
  };
  double left[16][16], right[16][8];
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < layout.a_count; ++i) {
      const MmaLayout::Position p = layout.A(lane, i);
      left[p.row][p.column] = operand(a, lane, i);
    }
    for (int i = 0; i < layout.b_count; ++i) {
      const MmaLayout::Position p = layout.B(lane, i);
      right[p.row][p.column] = operand(b, lane, i);
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const MmaLayout::Position p = MmaLayout::C(lane, i);
      double sum = read(c, lane, i);
      for (int k = 0; k < layout.k; ++k) sum += left[p.row][k] * right[k][p.column];
      const Cell value{.f = RoundResult(state.arithmetic, ir::DType::kF32, sum)};
      c.memory.Write(c.offsets[first + lane] + i, value, state.At(first + lane));
    }
  }
}

}  // namespace hackc::interp
