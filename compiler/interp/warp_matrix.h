// SPDX-License-Identifier: MIT
// ldmatrix and mma.sync of one warp and wgmma of a warpgroup, with the fragment layouts of the PTX
// manual.
//
// With g = lane / 4 and t = lane % 4, element i of a lane's fragment is
//   m16n8k16 a: row g + 8 * (i / 2 % 2), column 2t + i % 2 + 8 * (i / 4)
//            b: row 2t + i % 2 + 8 * (i / 2), column g
//   m16n8k8  a: row g + 8 * (i % 2), column t + 4 * (i / 2)
//            b: row t + 4 * i, column g
//   both     c: row g + 8 * (i / 2), column 2t + i % 2
// Warp w of a warpgroup has rows 16w to 16w + 15 of wgmma's a and c, with k as in mma; elements 4j
// to 4j + 3 of its c are columns 8j to 8j + 7.
//
// Thread safety: none; they change the given state.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/interp/lane_expr.h"
#include "compiler/ir/stmt.h"

namespace hackc::interp {

struct MmaLayout {
  explicit MmaLayout(ir::MmaShape shape);

  int k;        // 16 or 8
  int a_count;  // elements of one lane's fragment
  int b_count;

  struct Position {
    int row, column;
  };
  Position A(int lane, int i) const;
  Position B(int lane, int i) const;
  static Position C(int lane, int i);
};

// A fragment: a register array and, for each lane, the offset of its first element.
struct Fragment {
  LaneMemory& memory;
  const std::vector<int64_t>& offsets;
};

// Lane first + 8 * i + r gives the address of row r of matrix i. Lane l receives elements 2 * (l %
// 4) and the next of row l / 4 of each matrix; transposed: rows 2 * (l % 4) and the next of column
// l / 4.
void LoadMatrixOfWarp(const ir::LoadMatrix& n, int first, LaneMemory& source,
                      const std::vector<int64_t>& rows, LaneMemory& target,
                      const std::vector<int64_t>& to, LaneState& state);

// Products and their sum with the accumulator are exact, then rounded once; tf32 operands lose
// their low 13 bits in hardware arithmetic.
void MmaOfWarp(const ir::Mma& n, const MmaLayout& layout, int first, Fragment c, Fragment a,
               Fragment b, LaneState& state);

// An operand of a warpgroup: in shared memory, or in registers at the same offset for all lanes.
struct SharedOperand {
  LaneMemory& memory;
  int64_t offset;
};

// wgmma of warpgroup `group`, as the interpreter of warps runs it: the sum is there at once, but
// registers are held until the group is waited for, and shared memory is read in the name of the
// unit.
void WgmmaOfWarpgroup(const ir::Wgmma& n, int group, SharedOperand c, SharedOperand a,
                      SharedOperand b, bool reset, LaneState& state);

double ToTf32(double value);  // without the low 13 bits

}  // namespace hackc::interp
