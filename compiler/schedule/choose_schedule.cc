// SPDX-License-Identifier: MIT
#include "compiler/schedule/choose_schedule.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>
#include <utility>

#include "compiler/ir/rewrite.h"
#include "compiler/schedule/loop_facts.h"

namespace hackc::schedule {
namespace {

using namespace ir;  // NOLINT

constexpr int64_t kRowThreads = 256;   // of a row, at most
constexpr int64_t kFewQueries = 16;    // rows of a softmax sum
constexpr int64_t kTypicalRows = 512;  // where a product may have fewer and more
constexpr int64_t kTileSums = 16384;   // of a block, two of which share a multiprocessor
constexpr int64_t kStagedCost = 32;    // of an element in shared memory, in products

constexpr Digit Threads(int64_t extent, int64_t stride) {
  return {Digit::Kind::kThread, static_cast<int>(extent), static_cast<int>(stride)};
}
constexpr Digit Matrix() { return {Digit::Kind::kMatrix, 16, 1}; }
constexpr Digit Registers(int64_t extent) {
  return {Digit::Kind::kRegister, static_cast<int>(extent), 1};
}

int64_t PowerOfTwoAtMost(int64_t value) {
  return value < 1 ? 1 : std::bit_floor(static_cast<uint64_t>(value));
}

// Largest power of two that divides `value`, at most `limit`.
int64_t PowerOfTwoIn(int64_t value, int64_t limit) {
  return std::min(value & -value, PowerOfTwoAtMost(limit));
}

int64_t BitCeil(int64_t value) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(value)));
}

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

class Chooser {
 public:
  Chooser(const LoopFn& loop, const Target& target)
      : facts_(FindFacts(loop)), target_(target), names_(TakenNames(loop.fn)) {}

  Schedule Run() {
    if (!facts_.softmax_axes.empty()) {
      Softmax();
    } else if (const Contraction* product = FindProduct()) {
      Product(*product);
    } else {
      Rows();
    }
    // Free axes that have no entry yet and are outermost go to the grid; the rest run in order.
    for (const AxisFacts& axis : facts_.axes) {
      if (!schedule_.Find(axis.name) && GridPossible(axis)) {
        Add(axis.name, LoopKind::kGridX, 1, {});
      }
    }
    return std::move(schedule_);
  }

 private:
  // A grid loop may only be inside grid loops.
  bool GridPossible(const AxisFacts& axis) const {
    return axis.can_be_grid &&
           std::none_of(schedule_.axes.begin(), schedule_.axes.end(), [&](const AxisSchedule& e) {
             return e.outer == LoopKind::kSerial &&
                    std::find(axis.outer.begin(), axis.outer.end(), e.axis) != axis.outer.end();
           });
  }

  // `digits` may hold factors of 1.
  void Add(const std::string& axis, LoopKind outer, int64_t steps, std::vector<Digit> digits) {
    std::erase_if(digits, [](const Digit& digit) { return digit.extent <= 1; });
    const AxisFacts* facts = facts_.Find(axis);
    if (facts && !facts->can_be_grid) outer = LoopKind::kSerial;
    schedule_.axes.push_back({axis, outer, static_cast<int>(steps), std::move(digits)});
  }

  const Contraction* FindProduct() const {
    for (const Contraction& c : facts_.contractions) {
      if (!c.n_axes.empty()) return &c;
    }
    return nullptr;
  }

  // The axis of `names` with the most iterations.
  std::string Longest(const std::vector<std::string>& names) const {
    std::string best;
    int64_t longest = 0;
    for (const std::string& name : names) {
      if (int64_t extent = facts_.Find(name)->max_extent; extent > longest) {
        longest = extent;
        best = name;
      }
    }
    return best;
  }

  int64_t Vector(int64_t extent, DType dtype) const {
    return PowerOfTwoIn(extent, 16 / SizeOf(dtype));
  }

  // ---- product and narrow -----------------------------------------------------------------------
  void Product(const Contraction& c) {
    std::string m = Longest(c.m_axes), n = Longest(c.n_axes);
    int64_t rows = m.empty() ? 1 : facts_.Find(m)->max_extent;
    int64_t columns = facts_.Find(n)->max_extent;
    bool matrix = absl::c_all_of(facts_.contractions,
                                 [&](const Contraction& each) { return MatrixPossible(each); });
    if (matrix && rows > 1 && rows <= kFewMatrixRows) return NarrowMatrix(c, m, n, rows);
    if (rows <= kFewRows) {
      Narrow(c, m, n, rows);
      return;
    }
    // Rows vary fastest over the grid: the blocks that run together share the columns' operand, the
    // weights, which are read from memory once; the rows' operand is small enough to stay in L2.
    int64_t accumulators = static_cast<int64_t>(facts_.contractions.size());
    const auto [bm, bn] = Tile(m.empty() ? 1 : facts_.Find(m)->min_extent, rows, columns, matrix);
    schedule_.threads = 256;
    schedule_.min_blocks_per_sm = bm * bn * accumulators > kTileSums ? 1 : 2;
    const AxisFacts& k = *facts_.Find(c.k_axis);
    int64_t unit = std::min<int64_t>(4, 16 / std::max(SizeOf(c.a_dtype), SizeOf(c.b_dtype)));
    int64_t bk = c.a_dtype == DType::kF32 ? 16 : 32;
    while (unit > 1 && k.max_extent % unit != 0) unit /= 2;
    bk = std::max(unit, std::min(bk, PowerOfTwoAtMost(k.max_extent)));
    if (matrix) {
      // Warps, two along rows, in the layout of the instruction's result. What a warp reads of
      // shared memory for its products falls with its share of the tile, so there are four, eight
      // where that leaves each too few sums.
      const int64_t across = bm * bn * accumulators < kTileSums / 2 ? 4 : 2;
      schedule_.instruction = MatrixInstruction::kMma;
      schedule_.threads = static_cast<int>(64 * across);
      Add(m, LoopKind::kGridX, 1,
          {Threads(2, 32 * across), Registers(bm / 32), Registers(2), Threads(8, 4)});
      Add(n, LoopKind::kGridY, 1,
          {Threads(across, 32), Registers(bn / (8 * across)), Threads(4, 1), Registers(2)});
      bk = PowerOfTwoIn(k.max_extent, 64);
      Add(c.k_axis, LoopKind::kSerial, bk / 16, {Matrix()});
      StageMatrices(c.k_axis, bm + accumulators * bn, bk, 0, 3);
      return;
    }
    Add(m, LoopKind::kGridX, 1, {Registers(bm / 16), Threads(16, 16)});
    Add(n, LoopKind::kGridY, 1, {Registers(bn / 16), Threads(16, 1)});
    Add(c.k_axis, LoopKind::kSerial, bk / unit, {Registers(unit)});
    for (const Contraction& each : facts_.contractions) {
      StageAt(each.a, c.k_axis, 16 / SizeOf(each.a_dtype));
      StageAt(each.b, c.k_axis, 16 / SizeOf(each.b_dtype));
      int64_t row = bk * SizeOf(c.a_dtype) + 16;
      Ring(c.k_axis, (bm + accumulators * bn) * std::max<int64_t>(row, bk * SizeOf(c.b_dtype) + 16),
           0);
    }
  }

  // Rows and columns of a block: those that take a multiprocessor the least time. A block's is what
  // it stages (all there is to matrix instructions) and its products. One alone hides less: three
  // tenths more, or, where its sums leave no room for a second at all, a twentieth, for it has more
  // products to hide with; at the same speed that one is to be preferred, as blocks that share a
  // multiprocessor drift apart and read rows twice. Fitted to a sweep on an H200 over the products
  // of TinyLlama and Qwen2.5-7B: where the tile that it takes was measured, it is the best or
  // within a tenth of it at 512 and 2048 rows.
  std::pair<int64_t, int64_t> Tile(int64_t least_rows, int64_t most_rows, int64_t columns,
                                   bool matrix) const {
    const int64_t sums = static_cast<int64_t>(facts_.contractions.size());
    const int64_t rows = std::min(std::max(2 * (least_rows - 1), kTypicalRows), most_rows);
    std::pair<int64_t, int64_t> best(32, 64);
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int64_t bm = 32; bm <= 256; bm *= 2) {
      for (int64_t bn = 64; bn <= 128; bn *= 2) {
        const int64_t all = bm * bn * sums;
        if (all > (matrix ? kTileSums : 2 * kTileSums)) continue;
        const int64_t blocks =
            CeilDivide(CeilDivide(rows, bm) * CeilDivide(columns, bn), target_.multiprocessors);
        const int64_t twentieths = all > kTileSums ? 21 * blocks : 20 * blocks + blocks % 2 * 6;
        const int64_t cost = twentieths * (kStagedCost * (bm + bn * sums) + (matrix ? 0 : all));
        if (cost < least) std::tie(least, best) = std::tuple(cost, std::pair(bm, bn));
      }
    }
    return best;
  }

  // Two operands of the same 16-bit dtype, each one load, and a whole number of instructions deep.
  bool MatrixPossible(const Contraction& c) const {
    const AxisFacts& k = *facts_.Find(c.k_axis);
    return !c.a.empty() && !c.b.empty() && c.a_dtype == c.b_dtype && SizeOf(c.a_dtype) == 2 &&
           k.is_static && k.max_extent % 16 == 0 && !c.m_axes.empty();
  }

  void StageAt(const std::string& buffer, const std::string& axis, int padding) {
    if (buffer.empty()) return;
    for (const StageSchedule& stage : schedule_.stages) {
      if (stage.buffer == buffer && stage.axis == axis) return;
    }
    schedule_.stages.push_back({buffer, axis, 1, CopyEngine::kRegisters, padding});
  }

  // Rings for what is staged along `axis`, `slot` bytes a slot: as deep as lets two blocks share a
  // multiprocessor beside `fixed` bytes, at most `most` (one less on their way), or one where two
  // do not fit.
  void Ring(const std::string& axis, int64_t slot, int64_t fixed, int64_t most = 3) {
    int64_t room = std::min(target_.shared_bytes_per_block,
                            target_.shared_bytes_per_multiprocessor / 2 - 1024) -
                   fixed;
    if (2 * slot > room) room = target_.shared_bytes_per_block - fixed;
    int64_t depth = std::min<int64_t>(most, room / slot);
    if (depth < 2) return;
    for (StageSchedule& stage : schedule_.stages) {
      if (stage.axis != axis) continue;
      stage.depth = static_cast<int>(depth);
      stage.engine = CopyEngine::kCpAsync;
    }
  }

  // Rings of the operands of all products, `rows` rows of `bk` elements a slot; rows 16 bytes apart
  // modulo 128.
  void StageMatrices(const std::string& k, int64_t rows, int64_t bk, int64_t fixed, int64_t most) {
    for (const Contraction& each : facts_.contractions) {
      StageAt(each.a, k, 8);
      StageAt(each.b, k, 8);
    }
    Ring(k, rows * (bk + 8) * 2, fixed, most);
  }

  // Few rows of 16-bit elements: sixteen columns' weights are the rows of the instruction, eight
  // rows are its columns, and all there is to do is to read the weights once. Little's law asks for
  // some 40 KB on their way to each multiprocessor (4.8 TB/s, about 1 us, 132 of them).
  void NarrowMatrix(const Contraction& c, const std::string& m, const std::string& n,
                    int64_t rows) {
    const int64_t columns = facts_.Find(n)->max_extent;
    const int64_t sums = static_cast<int64_t>(facts_.contractions.size());
    // Every block reads the rows again, so it has many columns: half as many where the blocks then
    // still have a multiprocessor each, or nearly so.
    int64_t bn = std::max<int64_t>(16, PowerOfTwoAtMost(64 / sums));
    while (bn > 16 && 8 * CeilDivide(columns, bn / 2) <= 9 * target_.multiprocessors) bn /= 2;
    const int64_t bk = PowerOfTwoIn(facts_.Find(c.k_axis)->max_extent, 8192 / (sums * bn));
    // Four warps: what sixteen columns each leave over shares the sums.
    const int64_t along = bn / 16, parts = std::min(4 / along, bk / 16);
    schedule_.instruction = MatrixInstruction::kMma;
    schedule_.threads = static_cast<int>(32 * along * parts);
    const int64_t eights = CeilDivide(rows, 8);
    Add(m, LoopKind::kGridY, 1, {Registers(eights), Threads(4, 1), Registers(2)});
    Add(n, LoopKind::kGridX, 1, {Threads(along, 32), Registers(2), Threads(8, 4)});
    Add(c.k_axis, LoopKind::kSerial, bk / (16 * parts), {Threads(parts, 32 * along), Matrix()});
    StageMatrices(c.k_axis, sums * bn + 8 * eights, bk, sums * eights * 16 * schedule_.threads, 4);
    // Through L1 an H200 reads what all blocks read so much faster that eight rows take as long as
    // two: Qwen2.5-7B's down projection 37.7 us rather than 43.2.
    for (StageSchedule& stage : schedule_.stages) {
      if (stage.buffer == c.a) stage.cache = CacheHint::kKeep;
    }
  }

  void Narrow(const Contraction& c, const std::string& m, const std::string& n, int64_t rows) {
    schedule_.threads = 128;
    int64_t columns = facts_.Find(n)->max_extent;
    int64_t k = facts_.Find(c.k_axis)->max_extent;
    const bool one = facts_.contractions.size() == 1;
    int64_t vector = Vector(k, c.b_dtype);
    while (vector * rows > 32 && vector > 2) vector /= 2;
    // Lanes over k keep enough loads on their way where columns are few; the sums of several warps
    // are exchanged through shared memory, which two accumulators of many rows and columns make too
    // dear. Columns of one thread share each read of the rows. Both were taken from a sweep on an
    // H200 over the products of TinyLlama and Qwen2.5-7B: for eight rows of bfloat16, 32 lanes and
    // one column take twice as long.
    int64_t lanes = rows == 1 ? 64 : one ? 128 : 32;
    lanes = std::min(lanes, PowerOfTwoAtMost(std::max<int64_t>(1, k / vector)));
    int64_t groups = 128 / lanes;
    int64_t each = rows == 1 ? 1 : SizeOf(c.b_dtype) == 2 ? 4 : 2;
    while (each > 1 && CeilDivide(columns, each * groups) < target_.multiprocessors) each /= 2;
    if (!one && rows > 1 && SizeOf(c.b_dtype) == 4) vector = std::min<int64_t>(vector, 2);
    if (!m.empty()) Add(m, LoopKind::kGridY, 1, {Registers(rows)});
    Add(n, LoopKind::kGridX, 1, {Registers(each), Threads(groups, lanes)});
    Add(c.k_axis, LoopKind::kSerial, 1, {Threads(lanes, 1), Registers(vector)});
  }

  // ---- rows and pointwise -----------------------------------------------------------------------
  void Rows() {
    std::vector<const AxisFacts*>
        inner;  // innermost loops: reduced rows, and the columns written after them
    for (const AxisFacts& axis : facts_.axes) {
      bool innermost = absl::c_none_of(facts_.axes, [&](const AxisFacts& other) {
        return absl::c_linear_search(other.outer, axis.name);
      });
      if (innermost) inner.push_back(&axis);
    }
    if (inner.empty()) {
      schedule_.threads = 32;
      return;
    }
    bool pointwise =
        absl::c_all_of(facts_.axes, [](const AxisFacts& a) { return a.role == AxisRole::kFree; });
    if (pointwise && inner.size() > 1) return SideBySide(inner);
    pointwise = inner.size() == 1 && inner[0]->role == AxisRole::kFree;
    int64_t extent = inner[0]->max_extent;
    int64_t vector = 1;
    bool all_static = absl::c_all_of(inner, [](const AxisFacts* a) { return a->is_static; });
    if (all_static) vector = PowerOfTwoIn(extent, 16 / facts_.widest_store);
    const int64_t items = CeilDivide(extent, vector);
    int64_t threads = ThreadsFor(items);
    if (!pointwise) {
      // A row alone on its multiprocessor waits for memory once rather than once a round.
      int64_t rows = 1;
      for (const std::string& axis : inner[0]->outer) rows *= facts_.Find(axis)->max_extent;
      if (rows <= target_.multiprocessors) threads = std::min<int64_t>(1024, BitCeil(items));
      threads = std::max<int64_t>(threads, 32);
    }
    for (const AxisFacts* axis : inner) {
      Add(axis->name, pointwise ? LoopKind::kGridX : LoopKind::kSerial, 1,
          {Threads(threads, 1), Registers(vector)});
    }
    schedule_.threads = static_cast<int>(std::max<int64_t>(threads, 32));
    if (!pointwise) return;
    int64_t all = ShareBlock(inner[0]->outer, 0, threads, LoopKind::kGridX);
    schedule_.threads = static_cast<int>(std::max<int64_t>(all, 32));
  }

  // Threads of a block for so many items of a row: as many, but fewer where that wastes less of the
  // last round.
  static int64_t ThreadsFor(int64_t items) {
    int64_t threads = std::min(kRowThreads, BitCeil(items));
    for (int64_t candidate = threads; candidate >= 32; candidate /= 2) {
      int64_t covered = CeilDivide(items, candidate) * candidate;
      if (covered * 100 <= items * 110) return candidate;
    }
    return threads;
  }

  // Short rows share a block: threads over the next axes outwards, down to `outer[end]`. Returns
  // how many threads there are then.
  int64_t ShareBlock(const std::vector<std::string>& outer, size_t end, int64_t stride,
                     LoopKind kind) {
    for (size_t i = outer.size(); i-- > end && stride < kRowThreads;) {
      int64_t share =
          std::min(PowerOfTwoAtMost(facts_.Find(outer[i])->max_extent), kRowThreads / stride);
      Add(outer[i], kind, 1, {Threads(share, stride)});
      stride *= share;
    }
    return stride;
  }

  // Pointwise nests one after another under loops that they share: one block does all of them.
  void SideBySide(const std::vector<const AxisFacts*>& inner) {
    size_t shared = inner[0]->outer.size();
    for (const AxisFacts* axis : inner) {
      auto [end, ignored] = std::mismatch(axis->outer.begin(), axis->outer.end(),
                                          inner[0]->outer.begin(), inner[0]->outer.end());
      shared = std::min(shared, static_cast<size_t>(end - axis->outer.begin()));
    }
    int64_t most = 32;
    for (const AxisFacts* axis : inner) {
      int64_t vector =
          axis->is_static ? PowerOfTwoIn(axis->max_extent, 16 / facts_.widest_store) : 1;
      int64_t threads = ThreadsFor(CeilDivide(axis->max_extent, vector));
      Add(axis->name, LoopKind::kSerial, 1, {Threads(threads, 1), Registers(vector)});
      most = std::max(most, ShareBlock(axis->outer, shared, threads, LoopKind::kSerial));
    }
    schedule_.threads = static_cast<int>(most);
  }

  // ---- softmax ----------------------------------------------------------------------------------
  void Softmax() {
    const std::string j = facts_.softmax_axes[0];
    const AxisFacts& keys = *facts_.Find(j);
    // The score contraction: rows of queries, its k axis is the head dimension.
    const Contraction* score = facts_.contractions.empty() ? nullptr : &facts_.contractions[0];
    std::string row;
    if (score != nullptr) {
      std::vector<std::string> rows;
      for (const std::string& axis : score->m_axes) {
        if (GridPossible(*facts_.Find(axis))) rows.push_back(axis);
      }
      row = Longest(rows);
    }
    int64_t row_count = row.empty() ? 1 : facts_.Find(row)->max_extent;
    int64_t dim = score ? facts_.Find(score->k_axis)->max_extent : 1;
    // Value columns: the free axes inside the key loop and the ones that read the result.
    std::vector<const AxisFacts*> columns;
    for (const AxisFacts& axis : facts_.axes) {
      if (axis.role != AxisRole::kFree || !axis.is_static) continue;
      bool in_keys = absl::c_linear_search(axis.outer, j);
      bool after = axis.outer == keys.outer;
      if (in_keys || after) columns.push_back(&axis);
    }
    int64_t width = columns.empty() ? 1 : columns[0]->max_extent;

    // Threads 16 x 16 over rows and keys; shrink until what is staged fits.
    int64_t element = score ? SizeOf(score->a_dtype) : 4;
    int64_t bs = std::min<int64_t>(64, std::max<int64_t>(16, PowerOfTwoAtMost(2 * row_count - 1))),
            bj = 64;
    auto bytes = [&] {
      return bs * (dim + 16 / element) * element + bj * (dim + width + 32 / element) * element +
             bs * (bj + 4) * 4;
    };
    while (bytes() > target_.shared_bytes_per_block && bj > 16) bj /= 2;
    while (bytes() > target_.shared_bytes_per_block && bs > 16) bs /= 2;
    if (row_count <= kFewQueries && facts_.softmax_values.size() == 1)
      return FewRows(j, score, row, row_count, columns, dim, width);
    if (score != nullptr && MatrixPossible(*score) && !row.empty() && width % 8 == 0 &&
        facts_.softmax_values.size() == 1) {
      bs = 64;
      bj = 64;
      while (bytes() > target_.shared_bytes_per_block && bj > 16) bj /= 2;
      SoftmaxOnMatrices(j, *score, row, columns, dim, width, bj, false);
      return;
    }
    schedule_.threads = 256;
    if (!row.empty()) Add(row, LoopKind::kGridX, 1, {Registers(bs / 16), Threads(16, 16)});
    Add(j, LoopKind::kSerial, 1, {Registers(bj / 16), Threads(16, 1)});
    if (score != nullptr) {
      int64_t unit = PowerOfTwoIn(dim, 4);
      Add(score->k_axis, LoopKind::kSerial, 1, {Registers(unit)});
    }
    Add(names_.Unique(j + "_value"), LoopKind::kSerial, bj / 4, {Registers(4)});
    for (const AxisFacts* axis : columns) {
      int64_t lanes = PowerOfTwoIn(axis->max_extent, 16);
      Add(axis->name, LoopKind::kSerial, 1,
          {Registers(axis->max_extent / lanes), Threads(lanes, 1)});
    }
    if (score != nullptr) {
      int padding = static_cast<int>(16 / element);
      if (!row.empty()) StageAt(score->a, row, padding);
      StageAt(score->b, j, padding);
    }
    for (const std::string& value : facts_.softmax_values)
      StageAt(value, j, static_cast<int>(16 / element));
  }

  // Both products on matrix instructions, by four warps. Each has sixteen rows of its own, whose
  // scores stay in its registers and are the first operand of the sum; or, `shared`, all have the
  // same sixteen rows, and each takes a quarter of the keys for the scores, of the columns for the
  // values.
  void SoftmaxOnMatrices(const std::string& j, const Contraction& score, const std::string& row,
                         const std::vector<const AxisFacts*>& columns, int64_t dim, int64_t width,
                         int64_t keys, bool shared) {
    const int64_t down = shared ? 1 : 4, across = shared ? 4 : 1, element = SizeOf(score.a_dtype);
    schedule_.instruction = MatrixInstruction::kMma;
    schedule_.threads = 128;
    Add(row, LoopKind::kGridX, 1, {Threads(down, 32), Registers(2), Threads(8, 4)});
    auto add_columns = [&](const std::string& axis, int64_t extent) {
      Add(axis, LoopKind::kSerial, 1,
          {Threads(across, 32), Registers(extent / (8 * across)), Threads(4, 1), Registers(2)});
    };
    add_columns(j, keys);
    Add(score.k_axis, LoopKind::kSerial, dim / 16, {Matrix()});
    Add(names_.Unique(j + "_value"), LoopKind::kSerial, keys / 16, {Matrix()});
    for (const AxisFacts* axis : columns) add_columns(axis->name, axis->max_extent);
    StageAt(score.a, row, 8);
    StageAt(score.b, j, 8);
    StageAt(facts_.softmax_values[0], j, 8);
    const int64_t fixed = shared ? 16 * (dim + keys + 16) + 1024 : 64 * (dim + 8);
    Ring(j, keys * (dim + width + 16) * element, fixed * element);
  }

  // Few queries, or scores that are only loaded: for the scores, threads over keys and pairs of
  // rows; for the values, threads over columns, and groups of them over keys, whose parts are added
  // up once at the end.
  void FewRows(const std::string& j, const Contraction* score, const std::string& row, int64_t rows,
               const std::vector<const AxisFacts*>& columns, int64_t dim, int64_t width) {
    if (score && !row.empty() && MatrixPossible(*score) && width % 32 == 0)
      return SoftmaxOnMatrices(j, *score, row, columns, dim, width, 64, true);
    const int64_t element = score ? SizeOf(score->b_dtype) : 4;
    const int64_t bytes = (dim + width) * element + 32;  // staged of a key
    // Up to eight rows share what is read; half of the threads take half of them.
    const int64_t tile = CeilDivide(rows, CeilDivide(rows, 8)), halves = rows > 1 ? 2 : 1;
    int64_t keys = 128 / halves;
    if (!score) keys = std::clamp<int64_t>(BitCeil(facts_.Find(j)->max_extent), 32, 128);
    while (keys > 32 && 2 * keys * bytes > target_.shared_bytes_per_block - 8192) keys /= 2;
    // Scores that are only loaded are few: more threads for the values.
    const int64_t threads = score ? keys : 256;
    schedule_.threads = static_cast<int>(threads * halves);
    int64_t vector = PowerOfTwoIn(width, 16 / element);
    while (rows > 1 && vector > 1 && width / vector < 32) vector /= 2;
    int64_t lanes = PowerOfTwoIn(width / vector, threads);
    int64_t groups = threads / lanes;
    if (!row.empty()) {
      Add(row, LoopKind::kGridX, 1,
          {Threads(halves, threads), Registers(CeilDivide(tile, halves))});
    }
    Add(j, LoopKind::kSerial, 1, {Threads(keys, 1)});
    int64_t unit = std::clamp<int64_t>(keys / groups, 1, 4);
    Add(names_.Unique(j + "_value"), LoopKind::kSerial,
        std::max<int64_t>(1, keys / (groups * unit)),
        {Threads(std::min(groups, keys), lanes), Registers(unit)});
    for (const AxisFacts* axis : columns) {
      Add(axis->name, LoopKind::kSerial, 1,
          {Registers(width / (vector * lanes)), Threads(lanes, 1), Registers(vector)});
    }
    if (!score) return;
    Add(score->k_axis, LoopKind::kSerial, 1, {Registers(PowerOfTwoIn(dim, 16 / element))});
    if (rows > 1) StageAt(score->a, row, static_cast<int>(16 / element));
    StageAt(score->b, j, static_cast<int>(16 / element));
    StageAt(facts_.softmax_values[0], j, static_cast<int>(16 / element));
    Ring(j, keys * bytes, 8192 + (rows > 1 ? tile * (dim + 8) * element : 0));
  }

  LoopFacts facts_;
  const Target& target_;
  NameSet names_;
  Schedule schedule_;
};

}  // namespace

Schedule ChooseSchedule(const LoopFn& loop, const Target& target) {
  return Chooser(loop, target).Run();
}

}  // namespace hackc::schedule
