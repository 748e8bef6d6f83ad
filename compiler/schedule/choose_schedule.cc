// SPDX-License-Identifier: MIT
#include "compiler/schedule/choose_schedule.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/rewrite.h"
#include "compiler/schedule/check_schedule.h"
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

int64_t PowerOfTwoAtMost(int64_t n) { return std::bit_floor<uint64_t>(std::max<int64_t>(n, 1)); }
int64_t BitCeil(int64_t n) { return std::bit_ceil<uint64_t>(n); }
// Largest power of two that divides `n`, at most `most`.
int64_t PowerOfTwoIn(int64_t n, int64_t most) { return std::min(n & -n, PowerOfTwoAtMost(most)); }
int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

class Chooser {
 public:
  Chooser(const LoopFn& loop, const Target& target)
      : loop_(loop), facts_(FindFacts(loop)), target_(target) {}

  absl::StatusOr<Schedule> Run() {
    if (Found()) return std::move(schedule_);
    return absl::FailedPreconditionError(
        absl::StrCat("target.arch: no known schedule fits ", target_.arch,
                     "; the last one tried: ", refused_.message()));
  }

 private:
  bool Found() {
    if (!facts_.softmax_axes.empty()) return Softmax();
    for (const Contraction& c : facts_.contractions) {
      if (!c.n_axes.empty()) return Product(c);
    }
    return Take([&] { Rows(); });
  }

  // Whether what `form` writes fits the target, its rings with as many slots as it asks for or
  // fewer, but at least `slots`.
  bool Take(auto&& form, int slots = 1) {
    schedule_ = {};
    form();
    // Free axes that have no entry yet and are outermost go to the grid; the rest run in order.
    for (const AxisFacts& axis : facts_.axes) {
      if (!schedule_.Find(axis.name) && GridPossible(axis)) {
        Add(axis.name, LoopKind::kGridX, 1, {});
      }
    }
    int depth = 1;
    for (const StageSchedule& stage : schedule_.stages) depth = std::max(depth, stage.depth);
    for (; depth >= slots; --depth) {
      for (StageSchedule& stage : schedule_.stages) {
        stage.depth = std::min(stage.depth, depth);
        if (depth == 1) stage.engine = CopyEngine::kRegisters;
      }
      refused_ = CheckSchedule(loop_, schedule_, target_);
      if (refused_.ok()) return true;
    }
    return false;
  }

  // A grid loop may only be inside grid loops.
  bool GridPossible(const AxisFacts& axis) const {
    return axis.can_be_grid && absl::c_none_of(schedule_.axes, [&](const AxisSchedule& e) {
             return e.outer == LoopKind::kSerial && absl::c_linear_search(axis.outer, e.axis);
           });
  }

  // `digits` may hold factors of 1; "" is no axis.
  void Add(const std::string& axis, LoopKind outer, int64_t steps, std::vector<Digit> digits) {
    if (axis.empty()) return;
    std::erase_if(digits, [](const Digit& digit) { return digit.extent <= 1; });
    const AxisFacts* facts = facts_.Find(axis);
    if (facts && !facts->can_be_grid) outer = LoopKind::kSerial;
    schedule_.axes.push_back({axis, outer, static_cast<int>(steps), std::move(digits)});
  }

  int64_t ExtentOf(const std::string& name) const {
    const AxisFacts* axis = facts_.Find(name);
    return axis ? axis->max_extent : 0;
  }

  // The axis of `names` with the most iterations; "" where there is none.
  std::string Longest(const std::vector<std::string>& names) const {
    std::string best;
    for (const std::string& name : names)
      if (ExtentOf(name) > ExtentOf(best)) best = name;
    return best;
  }

  // ---- product and narrow -----------------------------------------------------------------------
  bool Product(const Contraction& c) {
    std::string m = Longest(c.m_axes), n = Longest(c.n_axes);
    int64_t rows = std::max<int64_t>(1, ExtentOf(m));
    bool matrix = absl::c_all_of(facts_.contractions,
                                 [&](const Contraction& each) { return MatrixPossible(each); });
    const bool few = matrix && rows > 1 && rows <= kFewMatrixRows;
    if (few && Take([&] { NarrowMatrix(c, m, n, rows); })) return true;
    if (rows <= kFewRows && Take([&] { Narrow(c, m, n, rows, LoopKind::kGridY); })) return true;
    // Twice as many: a tile of 64 rows would leave most of its threads without any, and has too
    // few blocks. Two blocks take the same columns one after the other: one reads them from L2.
    if (rows <= kFewMatrixRows) {
      for (const LoopKind of_rows : {LoopKind::kGridX, LoopKind::kGridY}) {
        if (Take([&] { Narrow(c, m, n, kFewRows, of_rows); })) return true;
      }
    }
    // Rows vary fastest over the grid: the blocks that run together share the columns' operand, the
    // weights, which are read from memory once; the rows' operand is small enough to stay in L2.
    // But only x has room for millions of columns.
    for (const bool on_matrices : {true, false}) {
      for (const LoopKind of_rows : {LoopKind::kGridX, LoopKind::kGridY}) {
        const auto form = [&] { Tiled(c, m, n, of_rows, on_matrices); };
        if (!m.empty() && (matrix || !on_matrices) && Take(form)) return true;
      }
    }
    return false;
  }

  void Tiled(const Contraction& c, const std::string& m, const std::string& n, LoopKind of_rows,
             bool matrix) {
    const int64_t k = ExtentOf(c.k_axis);
    const auto [bm, bn] = Tile(c, *facts_.Find(m), ExtentOf(n), matrix);
    const LoopKind of_columns = of_rows == LoopKind::kGridX ? LoopKind::kGridY : LoopKind::kGridX;
    int64_t bk = PowerOfTwoIn(k, 64);
    schedule_.threads = 256;
    schedule_.min_blocks_per_sm = bm * bn * sums_ > kTileSums ? 1 : 2;
    if (matrix) {
      // Warps, two along rows, in the layout of the instruction's result. What a warp reads of
      // shared memory for its products falls with its share of the tile, so there are four, eight
      // where that leaves each too few sums.
      const int64_t across = bm * bn * sums_ < kTileSums / 2 ? 4 : 2;
      schedule_.instruction = MatrixInstruction::kMma;
      schedule_.threads = static_cast<int>(64 * across);
      Add(m, of_rows, 1,
          {Threads(2, 32 * across), Registers(bm / 32), Registers(2), Threads(8, 4)});
      Add(n, of_columns, 1,
          {Threads(across, 32), Registers(bn / (8 * across)), Threads(4, 1), Registers(2)});
      Add(c.k_axis, LoopKind::kSerial, bk / 16, {Matrix()});
    } else {
      const int64_t unit =
          PowerOfTwoIn(k, 16 / std::max({4, SizeOf(c.a_dtype), SizeOf(c.b_dtype)}));
      const int64_t most = c.a_dtype == DType::kF32 ? 16 : 32;
      bk = std::max(unit, std::min(most, PowerOfTwoAtMost(k)));
      Add(m, of_rows, 1, {Registers(bm / 16), Threads(16, 16)});
      Add(n, of_columns, 1, {Registers(bn / 16), Threads(16, 1)});
      Add(c.k_axis, LoopKind::kSerial, bk / unit, {Registers(unit)});
    }
    StageOperands(c, bm + sums_ * bn, bk, 0, 3);
  }

  // Rows and columns of a block: those that take a multiprocessor the least time. A block's is what
  // it stages (all there is to matrix instructions) and its products. One alone hides less: three
  // tenths more, or, where its sums leave no room for a second at all, a twentieth, for it has more
  // products to hide with; at the same speed that one is to be preferred, as blocks that share a
  // multiprocessor drift apart and read rows twice. Fitted to a sweep on an H200 over the products
  // of TinyLlama and Qwen2.5-7B: where the tile that it takes was measured, it is the best or
  // within a tenth of it at 512 and 2048 rows.
  std::pair<int64_t, int64_t> Tile(const Contraction& c, const AxisFacts& m, int64_t columns,
                                   bool matrix) const {
    const int64_t rows = std::min(std::max(2 * (m.min_extent - 1), kTypicalRows), m.max_extent);
    int64_t others = 1;  // rows of other axes: each has blocks of its own
    for (const std::string& axis : c.m_axes)
      if (axis != m.name) others = std::min(kTypicalRows, others * facts_.Find(axis)->min_extent);
    std::pair<int64_t, int64_t> best(32, 64);
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int64_t bm = 32; bm <= 256; bm *= 2) {
      for (int64_t bn = 64; bn <= 128; bn *= 2) {
        const int64_t all = bm * bn * sums_;
        if (all > (matrix ? kTileSums : 2 * kTileSums)) continue;
        const int64_t blocks = CeilDivide(others * CeilDivide(rows, bm) * CeilDivide(columns, bn),
                                          target_.multiprocessors);
        const int64_t twentieths = all > kTileSums ? 21 * blocks : 20 * blocks + blocks % 2 * 6;
        const int64_t cost = twentieths * (kStagedCost * (bm + bn * sums_) + (matrix ? 0 : all));
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

  // Rows are 16 bytes longer, against bank conflicts.
  void StageAt(const std::string& buffer, const std::string& axis, int size) {
    const auto same = [&](const StageSchedule& s) { return s.buffer == buffer && s.axis == axis; };
    if (buffer.empty() || absl::c_any_of(schedule_.stages, same)) return;
    schedule_.stages.push_back({buffer, axis, 1, CopyEngine::kRegisters, 16 / size});
  }

  // Rings for what is staged along `axis`, `slot` bytes a slot: as deep as lets two blocks share a
  // multiprocessor beside about `fixed` bytes, at most `most` (one less on their way), or one where
  // two do not fit.
  void Ring(const std::string& axis, int64_t slot, int64_t fixed, int64_t most = 3) {
    int64_t room = std::min(target_.shared_bytes_per_block,
                            target_.shared_bytes_per_multiprocessor / 2 - 1024) -
                   fixed;
    if (2 * slot > room) room = target_.shared_bytes_per_block - fixed;
    const int64_t depth = std::min<int64_t>(most, room / slot);
    if (depth < 2) return;
    for (StageSchedule& stage : schedule_.stages) {
      if (stage.axis != axis) continue;
      stage.depth = static_cast<int>(depth);
      stage.engine = CopyEngine::kCpAsync;
    }
  }

  // Rings of the operands of all products, `rows` rows of `bk` elements a slot.
  void StageOperands(const Contraction& c, int64_t rows, int64_t bk, int64_t fixed, int64_t most) {
    for (const Contraction& each : facts_.contractions) {
      StageAt(each.a, c.k_axis, SizeOf(each.a_dtype));
      StageAt(each.b, c.k_axis, SizeOf(each.b_dtype));
    }
    Ring(c.k_axis, rows * (bk * std::max(SizeOf(c.a_dtype), SizeOf(c.b_dtype)) + 16), fixed, most);
  }

  // Few rows of 16-bit elements: sixteen columns' weights are the rows of the instruction, eight
  // rows are its columns, and all there is to do is to read the weights once. Little's law asks for
  // some 40 KB on their way to each multiprocessor (4.8 TB/s, about 1 us, 132 of them).
  void NarrowMatrix(const Contraction& c, const std::string& m, const std::string& n,
                    int64_t rows) {
    const int64_t columns = ExtentOf(n);
    // Every block reads the rows again, so it has many columns: half as many where the blocks then
    // still have a multiprocessor each, or nearly so.
    int64_t bn = std::max<int64_t>(16, PowerOfTwoAtMost(64 / sums_));
    while (bn > 16 && 8 * CeilDivide(columns, bn / 2) <= 9 * target_.multiprocessors) bn /= 2;
    const int64_t bk = PowerOfTwoIn(ExtentOf(c.k_axis), 8192 / (sums_ * bn));
    // Four warps: what sixteen columns each leave over shares the sums.
    const int64_t along = bn / 16, parts = std::min(4 / along, bk / 16);
    schedule_.instruction = MatrixInstruction::kMma;
    schedule_.threads = static_cast<int>(32 * along * parts);
    const int64_t eights = CeilDivide(rows, 8);
    Add(m, LoopKind::kGridY, 1, {Registers(eights), Threads(4, 1), Registers(2)});
    Add(n, LoopKind::kGridX, 1, {Threads(along, 32), Registers(2), Threads(8, 4)});
    Add(c.k_axis, LoopKind::kSerial, bk / (16 * parts), {Threads(parts, 32 * along), Matrix()});
    StageOperands(c, sums_ * bn + 8 * eights, bk, sums_ * eights * 16 * schedule_.threads, 4);
    // Through L1 an H200 reads what all blocks read so much faster that eight rows take as long as
    // two: Qwen2.5-7B's down projection 37.7 us rather than 43.2.
    for (StageSchedule& stage : schedule_.stages) {
      if (stage.buffer == c.a) stage.cache = CacheHint::kKeep;
    }
  }

  void Narrow(const Contraction& c, const std::string& m, const std::string& n, int64_t rows,
              LoopKind of_rows) {
    schedule_.threads = 128;
    int64_t columns = ExtentOf(n);
    int64_t k = ExtentOf(c.k_axis);
    const bool one = sums_ == 1;
    int64_t vector = PowerOfTwoIn(k, 16 / SizeOf(c.b_dtype));
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
    Add(m, of_rows, 1, {Registers(rows)});
    Add(n, of_rows == LoopKind::kGridX ? LoopKind::kGridY : LoopKind::kGridX, 1,
        {Registers(each), Threads(groups, lanes)});
    Add(c.k_axis, LoopKind::kSerial, 1, {Threads(lanes, 1), Registers(vector)});
  }

  // ---- rows and pointwise -----------------------------------------------------------------------
  void Rows() {
    // Innermost loops: reduced rows, and the columns written after them.
    std::vector<const AxisFacts*> inner;
    for (const AxisFacts& axis : facts_.axes) {
      bool innermost = absl::c_none_of(facts_.axes, [&](const AxisFacts& other) {
        return absl::c_linear_search(other.outer, axis.name);
      });
      if (innermost) inner.push_back(&axis);
    }
    const bool pointwise = inner.size() == 1 ? inner[0]->role == AxisRole::kFree
                                             : absl::c_all_of(facts_.axes, [](const AxisFacts& a) {
                                                 return a.role == AxisRole::kFree;
                                               });
    if (pointwise) return Pointwise(inner);
    const bool all_static = absl::c_all_of(inner, [](const AxisFacts* a) { return a->is_static; });
    const int64_t extent = inner[0]->max_extent;
    const int64_t vector = all_static ? PowerOfTwoIn(extent, 16 / facts_.widest_store) : 1;
    const int64_t items = CeilDivide(extent, vector);
    int64_t threads = ThreadsFor(items), rows = 1;
    // A row alone on its multiprocessor waits for memory once rather than once a round.
    for (const std::string& axis : inner[0]->outer) rows *= ExtentOf(axis);
    if (rows <= target_.multiprocessors) threads = std::min<int64_t>(1024, BitCeil(items));
    threads = std::max<int64_t>(threads, 32);
    for (const AxisFacts* axis : inner)
      Add(axis->name, LoopKind::kSerial, 1, {Threads(threads, 1), Registers(vector)});
    schedule_.threads = static_cast<int>(threads);
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
      int64_t share = std::min(PowerOfTwoAtMost(ExtentOf(outer[i])), kRowThreads / stride);
      Add(outer[i], kind, 1, {Threads(share, stride)});
      stride *= share;
    }
    return stride;
  }

  // One nest on the grid, or several one after another under loops that they share: one block does
  // all of them.
  void Pointwise(const std::vector<const AxisFacts*>& inner) {
    const bool several = inner.size() > 1;
    const LoopKind kind = several ? LoopKind::kSerial : LoopKind::kGridX;
    size_t shared = several ? inner[0]->outer.size() : 0;
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
      Add(axis->name, kind, 1, {Threads(threads, 1), Registers(vector)});
      most = std::max(most, ShareBlock(axis->outer, shared, threads, kind));
    }
    schedule_.threads = static_cast<int>(most);
  }

  // ---- softmax ----------------------------------------------------------------------------------
  struct Attention {
    std::string keys, values;            // axis of the keys, and what it is called for the values
    const Contraction* score = nullptr;  // null where scores are only loaded
    std::string row;                     // of queries; "": there is only one
    int64_t rows = 1;
    int64_t dim = 1;                        // of heads: the score's contracted axis
    std::vector<const AxisFacts*> columns;  // of values: inside the key loop, and of the result
    int64_t width = 1;
    int size = 4;  // of an element
  };

  bool Softmax() {
    Attention a{facts_.softmax_axes[0],
                TakenNames(loop_.fn).Unique(facts_.softmax_axes[0] + "_value")};
    if (!facts_.contractions.empty()) {
      a.score = &facts_.contractions[0];
      a.dim = ExtentOf(a.score->k_axis);
      a.size = SizeOf(a.score->b_dtype);
      std::vector<std::string> rows = a.score->m_axes;
      std::erase_if(rows, [&](const auto& axis) { return !facts_.Find(axis)->can_be_grid; });
      a.row = Longest(rows);
      a.rows = std::max<int64_t>(1, ExtentOf(a.row));
    }
    for (const AxisFacts& axis : facts_.axes) {
      const bool in_keys = absl::c_linear_search(axis.outer, a.keys);
      const bool after = axis.outer == facts_.Find(a.keys)->outer;
      if (axis.role == AxisRole::kFree && axis.is_static && (in_keys || after))
        a.columns.push_back(&axis);
    }
    if (!a.columns.empty()) a.width = a.columns[0]->max_extent;

    // More keys a round where two rounds fit, so that one is copied while the other is worked on.
    const bool one = facts_.softmax_values.size() == 1, few = one && a.rows <= kFewQueries;
    if (one && a.score && !a.row.empty() && MatrixPossible(*a.score) &&
        a.width % (few ? 32 : 8) == 0) {
      for (int64_t keys = 64; keys >= (few ? 32 : 16); keys /= 2) {
        if (Take([&] { SoftmaxOnMatrices(a, keys, few); }, keys > 32 ? 2 : 1)) return true;
      }
    }
    if (few) {
      int64_t keys = a.rows > 1 ? 64 : 128;
      if (!a.score) keys = std::clamp<int64_t>(BitCeil(ExtentOf(a.keys)), 32, 128);
      for (; keys >= 32; keys /= 2) {
        if (Take([&] { FewRows(a, keys); }, a.score && keys > 32 ? 2 : 1)) return true;
      }
    }
    int64_t queries = std::clamp<int64_t>(PowerOfTwoAtMost(2 * a.rows - 1), 16, 64);
    for (int64_t keys = 64; queries >= 16; (keys > 16 ? keys : queries) /= 2) {
      if (Take([&] { ManyRows(a, queries, keys); })) return true;
    }
    return false;
  }

  // Threads 16 x 16 over rows and keys, then over rows and columns.
  void ManyRows(const Attention& a, int64_t queries, int64_t keys) {
    schedule_.threads = 256;
    Add(a.row, LoopKind::kGridX, 1, {Registers(queries / 16), Threads(16, 16)});
    Add(a.keys, LoopKind::kSerial, 1, {Registers(keys / 16), Threads(16, 1)});
    if (a.score) Add(a.score->k_axis, LoopKind::kSerial, 1, {Registers(PowerOfTwoIn(a.dim, 4))});
    Add(a.values, LoopKind::kSerial, keys / 4, {Registers(4)});
    for (const AxisFacts* axis : a.columns) {
      int64_t lanes = PowerOfTwoIn(axis->max_extent, 16);
      Add(axis->name, LoopKind::kSerial, 1,
          {Registers(axis->max_extent / lanes), Threads(lanes, 1)});
    }
    if (a.score && !a.row.empty()) StageAt(a.score->a, a.row, a.size);
    StageKeys(a);
  }

  void StageKeys(const Attention& a) {
    if (a.score) StageAt(a.score->b, a.keys, a.size);
    for (const std::string& value : facts_.softmax_values) StageAt(value, a.keys, a.size);
  }

  // Both products on matrix instructions, by four warps. Each has sixteen rows of its own, whose
  // scores stay in its registers and are the first operand of the sum; or, `shared`, all have the
  // same sixteen rows, and each takes a quarter of the keys for the scores, of the columns for the
  // values.
  void SoftmaxOnMatrices(const Attention& a, int64_t keys, bool shared) {
    const int64_t down = shared ? 1 : 4, across = shared ? 4 : 1;
    schedule_.instruction = MatrixInstruction::kMma;
    schedule_.threads = 128;
    Add(a.row, LoopKind::kGridX, 1, {Threads(down, 32), Registers(2), Threads(8, 4)});
    auto add_columns = [&](const std::string& axis, int64_t extent) {
      Add(axis, LoopKind::kSerial, 1,
          {Threads(across, 32), Registers(extent / (8 * across)), Threads(4, 1), Registers(2)});
    };
    add_columns(a.keys, keys);
    Add(a.score->k_axis, LoopKind::kSerial, a.dim / 16, {Matrix()});
    Add(a.values, LoopKind::kSerial, keys / 16, {Matrix()});
    for (const AxisFacts* axis : a.columns) add_columns(axis->name, axis->max_extent);
    StageAt(a.score->a, a.row, a.size);
    StageKeys(a);
    const int64_t fixed = shared ? 16 * (a.dim + keys + 16) + 1024 : 64 * (a.dim + 8);
    Ring(a.keys, keys * (a.dim + a.width + 16) * a.size, fixed * a.size);
  }

  // Few queries, or scores that are only loaded: for the scores, threads over keys and pairs of
  // rows; for the values, threads over columns, and groups of them over keys, whose parts are added
  // up once at the end.
  void FewRows(const Attention& a, int64_t keys) {
    // Up to eight rows share what is read; half of the threads take half of them.
    const int64_t tile = CeilDivide(a.rows, CeilDivide(a.rows, 8)), halves = a.rows > 1 ? 2 : 1;
    // Scores that are only loaded are few: more threads for the values.
    const int64_t threads = a.score ? keys : 256;
    schedule_.threads = static_cast<int>(threads * halves);
    int64_t vector = PowerOfTwoIn(a.width, 16 / a.size);
    while (a.rows > 1 && vector > 1 && a.width / vector < 32) vector /= 2;
    int64_t lanes = PowerOfTwoIn(a.width / vector, threads);
    int64_t groups = threads / lanes;
    Add(a.row, LoopKind::kGridX, 1,
        {Threads(halves, threads), Registers(CeilDivide(tile, halves))});
    Add(a.keys, LoopKind::kSerial, 1, {Threads(keys, 1)});
    int64_t unit = std::clamp<int64_t>(keys / groups, 1, 4);
    Add(a.values, LoopKind::kSerial, std::max<int64_t>(1, keys / (groups * unit)),
        {Threads(std::min(groups, keys), lanes), Registers(unit)});
    for (const AxisFacts* axis : a.columns) {
      Add(axis->name, LoopKind::kSerial, 1,
          {Registers(a.width / (vector * lanes)), Threads(lanes, 1), Registers(vector)});
    }
    if (!a.score) return;
    Add(a.score->k_axis, LoopKind::kSerial, 1, {Registers(PowerOfTwoIn(a.dim, 16 / a.size))});
    if (a.rows > 1) StageAt(a.score->a, a.row, a.size);
    StageKeys(a);
    Ring(a.keys, keys * ((a.dim + a.width) * a.size + 32),
         8192 + (a.rows > 1 ? tile * (a.dim + 8) * a.size : 0));
  }

  const LoopFn& loop_;
  const LoopFacts facts_;
  const int64_t sums_ = static_cast<int64_t>(facts_.contractions.size());
  const Target& target_;
  Schedule schedule_;
  absl::Status refused_;
};

}  // namespace

absl::StatusOr<Schedule> ChooseSchedule(const LoopFn& loop, const Target& target) {
  return Chooser(loop, target).Run();
}

}  // namespace hackc::schedule
