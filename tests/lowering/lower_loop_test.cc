// SPDX-License-Identifier: MIT
// Loop IR to Kernel IR on single kernels: what the tile and kernel passes make of a nest is run by
// the Tile and the Kernel interpreter (races, bounds, poison) and compared with the Loop
// interpreter, at sizes round the tiles' edges, in every dtype and under several schedules.
#include <cmath>
#include <functional>
#include <random>
#include <set>

#include "compiler/interp/kernel_interpreter.h"
#include "compiler/interp/loop_interpreter.h"
#include "compiler/interp/tile_interpreter.h"
#include "compiler/ir/digits.h"
#include "compiler/ir/ranges.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/choose_schedule.h"
#include "compiler/support/cat.h"
#include "gmock/gmock.h"
#include "tests/support/golden.h"

namespace hackc::passes {
namespace {

using interp::FunctionRun;
using interp::TensorData;

std::string Replace(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// Values of a buffer's declared shape at the run's symbols.
TensorData Random(const ir::BufferDecl& buffer, const std::map<std::string, int64_t>& symbols,
                  std::mt19937& rng) {
  std::vector<int64_t> shape;
  for (const ir::Expr& extent : buffer.shape) {
    ir::Expr bound = ir::Rewrite(extent, [&](const ir::Expr& e) -> ir::Expr {
      const auto* symbol = ir::As<ir::Symbol>(e);
      return symbol ? ir::IntLit(symbols.at(symbol->name)) : nullptr;
    });
    shape.push_back(*ir::AsInt(bound));
  }
  TensorData data = TensorData::Zeros(buffer.dtype, shape);
  std::normal_distribution<double> normal;
  for (double& value : data.values) value = ir::IsFloat(buffer.dtype) ? normal(rng) : rng() % 50;
  data.Round();
  return data;
}

// Runs `text` at every level; the Kernel level must be within `tolerance` of the largest value.
void Check(const std::string& text, const std::map<std::string, int64_t>& symbols, double tolerance,
           const std::string& arch = "sm_90a",
           const std::function<void(FunctionRun&)>& poison = nullptr, int multiprocessors = 0) {
  SCOPED_TRACE(text);
  std::string at = "at";
  for (const auto& [name, value] : symbols) at += " " + name + "=" + std::to_string(value);
  SCOPED_TRACE(at);
  auto loop = ir::ParseLoop(text);
  ASSERT_OK(loop);
  auto target = schedule::FindTarget(arch);
  ASSERT_OK(target);
  if (multiprocessors > 0) target->multiprocessors = multiprocessors;
  auto lowered = LowerLoop(*loop, schedule::ChooseSchedule(*loop, *target).value());
  ASSERT_OK(lowered);

  std::mt19937 rng(7);
  FunctionRun inputs;
  inputs.symbols = symbols;
  std::string written;
  for (const ir::BufferDecl& buffer : loop->fn.buffers) {
    if (buffer.access == ir::Access::kWrite) {
      written = buffer.name;
    } else {
      inputs.buffers[buffer.name] = Random(buffer, symbols, rng);
    }
  }
  if (poison) poison(inputs);
  FunctionRun expected = inputs;
  ASSERT_OK(interp::RunLoop(*loop, expected));
  const std::vector<double>& truth = expected.buffers.at(written).values;
  double scale = 1e-30;
  for (double value : truth) scale = std::max(scale, std::abs(value));
  auto compare = [&](const FunctionRun& run, const char* level) {
    const std::vector<double>& got = run.buffers.at(written).values;
    ASSERT_EQ(got.size(), truth.size());
    double worst = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      double difference = std::abs(got[i] - truth[i]);
      worst = std::max(worst, std::isnan(difference) ? INFINITY : difference);
    }
    EXPECT_LE(worst / scale, tolerance) << level;
  };
  FunctionRun tile = inputs;
  ASSERT_OK(interp::RunTile(lowered->tile, tile));
  compare(tile, "tile");
  for (bool reverse : {false, true}) {
    FunctionRun kernel = inputs;
    kernel.arithmetic = interp::Arithmetic::kHardware;
    ASSERT_OK(interp::RunKernel(lowered->kernel, kernel, {.reverse_blocks = reverse}));
    compare(kernel, "kernel");
  }
}

// Rounding of the result to its dtype and of n float32 additions.
double Bound(const std::string& dtype, int64_t n) {
  double unit = dtype == "f32" ? 0 : dtype == "bf16" ? 1.0 / 256 : 1.0 / 2048;
  return unit + std::sqrt(static_cast<double>(n)) * 4e-7;
}

constexpr char kPointwise[] = R"hir(hackc loop 1
fn scale "doubles"  {
  symbol seq in 1..64
  read @x: T[seq, C]
  write @y: T[seq, C]
  for %s: free in seq {
    for %c: free in C {
      @y[%s, %c] = T((f32(@x[%s, %c]) * 2.0))
    }
  }
}
)hir";

constexpr char kRows[] = R"hir(hackc loop 1
fn norm "rms norm" {
  symbol seq in 1..64
  read @x: T[seq, C]
  read @w: T[C]
  write @y: T[seq, C]
  for %s: free in seq {
    acc %ss: sum
    for %c: reduce in C {
      %ss <- (f32(@x[%s, %c]) * f32(@x[%s, %c]))
    }
    let %scale = rsqrt((%ss + 0.001))
    for %d: free in C {
      @y[%s, %d] = T(((f32(@x[%s, %d]) * %scale) * f32(@w[%d])))
    }
  }
}
)hir";

constexpr char kTwoAxes[] = R"hir(hackc loop 1
fn total "sums matrices" {
  symbol seq in 1..64
  read @x: T[seq, 3, C]
  write @y: T[seq]
  for %s: free in seq {
    acc %sum: sum
    for %a: reduce in 3 {
      for %c: reduce in C {
        %sum <- f32(@x[%s, %a, %c])
      }
    }
    @y[%s] = T(%sum)
  }
}
)hir";

constexpr char kLinear[] = R"hir(hackc loop 1
fn linear "x w + bias" {
  symbol batch in 1..4
  symbol seq in 1..SEQ
  read @x: T[batch, seq, K]
  read @w: T[N, K]
  read @bias: T[N]
  write @y: T[batch, seq, N]
  for %b: free in batch {
    for %s: free in seq {
      for %n: free in N {
        acc %sum: sum
        for %k: contract in K {
          %sum <- (f32(@x[%b, %s, %k]) * f32(@w[%n, %k]))
        }
        @y[%b, %s, %n] = T((%sum + f32(@bias[%n])))
      }
    }
  }
}
)hir";

constexpr char kGated[] = R"hir(hackc loop 1
fn gate_up "silu(x g) * (x u)" {
  symbol seq in 1..64
  read @x: T[seq, K]
  read @g: T[N, K]
  read @u: T[N, K]
  write @y: T[seq, N]
  for %s: free in seq {
    for %n: free in N {
      acc %gate: sum
      acc %up: sum
      for %k: contract in K {
        %gate <- (f32(@x[%s, %k]) * f32(@g[%n, %k]))
        %up <- (f32(@x[%s, %k]) * f32(@u[%n, %k]))
      }
      @y[%s, %n] = T(((%gate / (1.0 + exp(neg(%gate)))) * %up))
    }
  }
}
)hir";

// Grouped-query attention whose values lie inside a wider buffer.
constexpr char kAttention[] = R"hir(hackc loop 1
fn attention "attention" {
  symbol batch in 1..4
  symbol seq in 1..200
  symbol past in 0..200
  read @q: T[batch, seq, 4, D]
  read @k: T[batch, (past + seq), 2, D]
  read @v: T[batch, (past + seq), (5 * D)]
  write @y: T[batch, seq, 4, D]
  for %b: free in batch {
    for %s: free in seq {
      for %h: free in 4 {
        acc %o: softmax_sum[D]
        for %j: reduce in ((past + %s) + 1) {
          acc %sc: sum
          for %d: contract in D {
            %sc <- (f32(@q[%b, %s, %h, %d]) * f32(@k[%b, %j, (%h // 2), %d]))
          }
          let %score = (%sc * 0.3)
          for %e: free in D {
            %o[%e] <- %score, f32(@v[%b, %j, (((%h // 2) * D) + (%e + D))])
          }
        }
        for %f: free in D {
          @y[%b, %s, %h, %f] = T(@o[%f])
        }
      }
    }
  }
}
)hir";

std::string With(std::string text, const std::string& dtype, std::map<std::string, int64_t> sizes) {
  text = Replace(text, "T[", dtype + "[");
  text = Replace(text, "T(", dtype + "(");
  for (const auto& [name, value] : sizes) {
    for (const char* end : {"]", "[", " ", ",", ")"}) {
      for (const char* start : {" ", "["})
        text = Replace(text, start + name + end, start + std::to_string(value) + end);
    }
    text = Replace(text, ".." + name, ".." + std::to_string(value));
  }
  if (dtype == "f32") text = Replace(text, "f32(", "(");
  if (dtype == "f32") text = Replace(text, "<- (@x[%s, %a, %c])", "<- @x[%s, %a, %c]");
  return text;
}

class LowerLoopTest : public testing::TestWithParam<const char*> {};

TEST_P(LowerLoopTest, Pointwise) {
  for (int64_t c : {1, 7, 8, 31, 64, 257, 1024}) {
    for (int64_t seq : {1, 3, 17})
      Check(With(kPointwise, GetParam(), {{"C", c}}), {{"seq", seq}}, Bound(GetParam(), 1));
  }
}

TEST_P(LowerLoopTest, Rows) {
  for (int64_t c : {1, 5, 32, 72, 127, 256, 1031, 3584}) {
    for (int64_t seq : {1, 3})
      Check(With(kRows, GetParam(), {{"C", c}}), {{"seq", seq}}, Bound(GetParam(), c));
  }
}

TEST_P(LowerLoopTest, Linear) {
  struct Case {
    int64_t n, k;
  };
  for (Case c : {Case{1, 1}, {33, 16}, {65, 72}, {31, 129}}) {
    std::string text = With(kLinear, GetParam(), {{"N", c.n}, {"K", c.k}, {"SEQ", 64}});
    for (int64_t seq : {1, 33}) Check(text, {{"batch", 2}, {"seq", seq}}, Bound(GetParam(), c.k));
  }
}

TEST_P(LowerLoopTest, LinearOfFewRows) {
  for (int64_t k : {1, 24, 257, 512}) {
    for (int64_t n : {1, 33}) {
      for (int64_t rows : {1, 5}) {
        std::string text = With(kLinear, GetParam(), {{"N", n}, {"K", k}, {"SEQ", rows}});
        Check(text, {{"batch", 2}, {"seq", rows}}, Bound(GetParam(), k));
      }
    }
  }
}

// Sixteen columns, eight rows and sixteen of k are an instruction: one short of whole, whole, one
// beyond, and primes.
TEST_P(LowerLoopTest, FewRowsOfEveryNumber) {
  for (auto [n, k] :
       {std::pair<int64_t, int64_t>{15, 16}, {16, 48}, {17, 1024}, {61, 64}, {33, 40}}) {
    const std::string text = With(kLinear, GetParam(), {{"N", n}, {"K", k}, {"SEQ", 1}});
    for (int64_t batch : {1, 2, 3, 7, 8}) {
      Check(Replace(text, "batch in 1..4", "batch in 1..8"), {{"batch", batch}, {"seq", 1}},
            Bound(GetParam(), k));
    }
    for (int64_t batch : {9, 13, 16}) {
      Check(Replace(text, "batch in 1..4", "batch in 9..16"), {{"batch", batch}, {"seq", 1}},
            Bound(GetParam(), k));
    }
  }
}

// Enough columns for tiles of 32 and of 64, the last of one column.
TEST_P(LowerLoopTest, FewRowsOfManyColumns) {
  for (int64_t n : {32 * 132 + 1, 64 * 132 + 1}) {
    Check(With(kLinear, GetParam(), {{"N", n}, {"K", 32}, {"SEQ", 1}}), {{"batch", 3}, {"seq", 1}},
          Bound(GetParam(), 32));
  }
}

TEST_P(LowerLoopTest, TwoContractionsOfFewRows) {
  const std::string text =
      Replace(With(kGated, GetParam(), {{"N", 37}, {"K", 96}}), "seq in 1..64", "seq in 2..8");
  for (int64_t seq : {2, 5, 8}) Check(text, {{"seq", seq}}, Bound(GetParam(), 96));
  for (int64_t seq : {2, 9, 16})
    Check(Replace(text, "in 2..8", "in 2..16"), {{"seq", seq}}, Bound(GetParam(), 96));
}

// What eight rows of 16-bit elements have to gain from: the weights are the operand of sixteen
// rows, and what all blocks read again is kept in L1.
TEST(LoweredKernels, WeightsOfFewRowsAreTheFirstOperand) {
  for (const char* dtype : {"bf16", "f16"}) {
    auto loop = ir::ParseLoop(Replace(With(kLinear, dtype, {{"N", 4096}, {"K", 2048}, {"SEQ", 1}}),
                                      "batch in 1..4", "batch in 2..8"));
    ASSERT_OK(loop);
    auto target = schedule::FindTarget("sm_90a");
    auto lowered = LowerLoop(*loop, schedule::ChooseSchedule(*loop, *target).value());
    ASSERT_OK(lowered);
    int products = 0;
    ir::WalkStmts(lowered->kernel.fn.body, [&](const ir::Stmt& s) {
      if (const auto* copy = ir::As<ir::AsyncCopy>(s))
        EXPECT_EQ(copy->cache == ir::CacheHint::kKeep, copy->source == "x") << copy->source;
      const auto* mma = ir::As<ir::Mma>(s);
      if (mma == nullptr) return;
      ++products;
      EXPECT_THAT(mma->a, testing::StartsWith("w_tile"));
      EXPECT_THAT(mma->b, testing::StartsWith("x_tile"));
    });
    EXPECT_GT(products, 0);
  }
}

TEST_P(LowerLoopTest, TwoContractionsOfOneOperand) {
  for (int64_t n : {5, 64}) {
    for (int64_t k : {32, 72}) {
      Check(With(kGated, GetParam(), {{"N", n}, {"K", k}}), {{"seq", 19}}, Bound(GetParam(), k));
    }
  }
}

TEST_P(LowerLoopTest, Attention) {
  for (int64_t d : {8, 16, 24, 48}) {
    std::string text = With(kAttention, GetParam(), {{"D", d}});
    for (auto [seq, past] : {std::pair<int64_t, int64_t>{1, 0}, {1, 63}, {7, 64}, {65, 0}}) {
      if (d != 16 && seq > 7) continue;
      // Weights are rounded to the storage dtype where the matrix units sum them.
      Check(text, {{"batch", seq > 1 ? 1 : 2}, {"seq", seq}, {"past", past}},
            2 * Bound(GetParam(), past + seq));
    }
  }
}

TEST_P(LowerLoopTest, AttentionOfOneQuery) {
  for (int64_t d : {8, 24, 64}) {
    std::string text =
        Replace(With(kAttention, GetParam(), {{"D", d}}), "seq in 1..200", "seq in 1..1");
    for (int64_t past : {0, 1, 63, 128, 200}) {
      if (d > 8 && past < 128) continue;
      Check(text, {{"batch", 2}, {"seq", 1}, {"past", past}}, 2 * Bound(GetParam(), past + 1));
    }
  }
}

// Threads hold parts of a sum until the outermost loop that it runs over has ended.
TEST_P(LowerLoopTest, SumOverTwoAxes) {
  for (int64_t c : {5, 64, 300}) {
    Check(With(kTwoAxes, GetParam(), {{"C", c}}), {{"seq", 3}}, Bound(GetParam(), 3 * c));
  }
}

TEST_P(LowerLoopTest, AttentionOnSmallSharedMemory) {
  Check(With(kAttention, GetParam(), {{"D", 128}}), {{"batch", 1}, {"seq", 3}, {"past", 30}},
        2 * Bound(GetParam(), 33), "sm_86");
}

// A cache is larger than what a run fills; the rest of it may hold anything, NaN above all.
TEST_P(LowerLoopTest, AttentionReadsNothingBeyondWhatIsFilled) {
  std::string text = Replace(Replace(kAttention, "(past + seq), 2, D]", "230, 2, D]"),
                             "(past + seq), (5 * D)]", "230, (5 * D)]");
  for (const char* seq_bound : {"1..30", "1..1"}) {
    std::string bounded = Replace(text, "seq in 1..200", std::string("seq in ") + seq_bound);
    for (auto [seq, past] : {std::pair<int64_t, int64_t>{1, 0}, {1, 63}, {1, 64}, {7, 66}}) {
      if (seq > 1 && std::string(seq_bound) == "1..1") continue;
      const int64_t batch = 2, filled = past + seq;
      auto poison = [=](FunctionRun& run) {
        for (const char* name : {"k", "v"}) {
          std::vector<double>& values = run.buffers.at(name).values;
          const int64_t row = static_cast<int64_t>(values.size()) / (batch * 230);
          for (size_t i = 0; i < values.size(); ++i) {
            if (static_cast<int64_t>(i) / row % 230 >= filled) values[i] = NAN;
          }
        }
      };
      Check(With(bounded, GetParam(), {{"D", 16}}),
            {{"batch", batch}, {"seq", seq}, {"past", past}}, 2 * Bound(GetParam(), filled),
            "sm_90a", poison);
    }
  }
}

// Attention to the keys that `mask` leaves in.
std::string Masked(const std::string& dtype, const std::string& mask) {
  return Replace(With(kAttention, dtype, {{"D", 16}}), "(%sc * 0.3)",
                 "select(" + mask + ", (%sc * 0.3), -inf)");
}

std::string Window(int64_t keys) { return Cat("(((past + %s) - %j) < ", keys, ")"); }

// Chunks are of 64 keys, blocks of 64 or 16 rows: windows that begin inside of a chunk, at its
// first key and one before, that are shorter and longer, and rows that see nothing of a chunk that
// others of their block need.
TEST_P(LowerLoopTest, AttentionOverAWindow) {
  struct Case {
    int64_t window, seq, past;
  };
  for (const Case& c : {Case{1, 67, 70}, {2, 1, 129}, {63, 131, 0}, {64, 67, 65}, {65, 3, 131}}) {
    Check(Masked(GetParam(), Window(c.window)),
          {{"batch", c.past == 131 ? 2 : 1}, {"seq", c.seq}, {"past", c.past}},
          2 * Bound(GetParam(), c.window));
  }
}

// Keys from elsewhere than a window: first ones that rise faster than the rows and beyond some
// rows' last, that fall from row to row, that are bounded from above; conditions that say nothing.
TEST_P(LowerLoopTest, AttentionOverMaskedKeys) {
  for (const char* mask : {"(((%s * 2) + 63) <= %j)", "((100 - %s) <= %j)",
                           "((%j < (past - 20)) && (((past + %s) - 90) < %j))",
                           "((past + %s) < ((%j * 2) + 3))", "(150 < %j)"}) {
    Check(Masked(GetParam(), mask), {{"batch", 1}, {"seq", 67}, {"past", 70}},
          2 * Bound(GetParam(), 137));
  }
}

// A key that no row of a block sees is not read: NaN there would spoil the sums, at a weight of 0.
TEST_P(LowerLoopTest, AttentionReadsNothingBeforeTheWindow) {
  const int64_t past = 200, filled = past + 7, batch = 2;
  for (const int64_t window : {1, 8, 9, 72, 73}) {
    const int64_t unseen = (past - window + 1) / 64 * 64;
    const auto poison = [=](FunctionRun& run) {
      for (const char* name : {"k", "v"}) {
        std::vector<double>& values = run.buffers.at(name).values;
        const int64_t row = static_cast<int64_t>(values.size()) / (batch * filled);
        for (size_t i = 0; i < values.size(); ++i) {
          if (static_cast<int64_t>(i) / row % filled < unseen) values[i] = NAN;
        }
      }
    };
    const std::string text =
        Replace(Masked(GetParam(), Window(window)), "seq in 1..200", "seq in 7..7");
    Check(text, {{"batch", batch}, {"seq", 7}, {"past", past}}, 2 * Bound(GetParam(), window),
          "sm_90a", poison);
  }
}

// Of a long prompt, each block walks the chunks from its first row's window to its last row.
TEST(LoweredKernels, BlocksWalkTheirWindowOnly) {
  const auto target = schedule::FindTarget("sm_90a");
  for (const int64_t window : {1, 50, 64, 65, 1000}) {
    auto loop = ir::ParseLoop(Masked("bf16", Window(window)));
    ASSERT_OK(loop);
    const ir::Schedule schedule = schedule::ChooseSchedule(*loop, *target).value();
    auto lowered = LowerLoop(*loop, schedule);
    ASSERT_OK(lowered);
    const int64_t rows = ir::TileOf(*schedule.Find("s")), keys = ir::TileOf(*schedule.Find("j"));
    ir::Expr trips, first = ir::IntLit(0);
    ir::WalkStmts(
        lowered->tile.fn.body,
        [&](const ir::For& walk) {
          if (walk.axis == "j_chunk_index") trips = walk.extent;
        },
        [&](const ir::Let& let) {
          if (let.name == "j_first") first = let.value;
        });
    ASSERT_NE(trips, nullptr);
    for (int64_t past : {0, 33, 200}) {
      for (int64_t block = 0; block * rows < 200; ++block) {
        ir::RangeMap ranges;
        ranges.SetSymbol("past", {past, past});
        ranges.SetVar("s_tile", {block, block});
        const ir::Range begin = ir::Bounds(first, ranges);
        ranges.SetVar("j_first", begin);
        const int64_t seen = std::max<int64_t>(0, past + block * rows - window + 1) / keys;
        const int64_t end = (past + (block + 1) * rows + keys - 1) / keys;
        EXPECT_EQ(begin, (ir::Range{seen, seen})) << window << " at " << block;
        EXPECT_EQ(ir::Bounds(trips, ranges), (ir::Range{end - seen, end - seen}))
            << window << " at " << block;
      }
    }
  }
}

// ---- what went wrong elsewhere: tests/README.md has the table -----------------------------------

// A machine of one multiprocessor gets the tiles of thousands of rows: one short of whole, one
// beyond, and primes.
TEST_P(LowerLoopTest, LargeTilesRoundEveryEdge) {
  for (const char* product : {kLinear, kGated}) {
    for (auto [seq, n] : {std::pair<int64_t, int64_t>{127, 129}, {129, 127}, {251, 61}}) {
      std::string text = With(product, GetParam(), {{"N", n}, {"K", 48}, {"SEQ", 256}});
      text = Replace(text, "in 1..64", "in 1..256");
      Check(text, {{"batch", 1}, {"seq", seq}}, Bound(GetParam(), 48), "sm_90a", nullptr, 1);
    }
  }
}

// Sums of a block, threads and resident blocks by the rows of the range, for an H200: many rows get
// the tiles that move fewer than twice the bytes that they must, few rows leave no multiprocessor
// idle.
TEST(LoweredKernels, TilesFollowTheRowsOfTheRange) {
  auto target = schedule::FindTarget("sm_90a");
  ASSERT_OK(target);
  auto tile = [&](const char* product, const char* dtype, int64_t n, int64_t k, const char* range) {
    std::string text = With(product, dtype, {{"N", n}, {"K", k}, {"SEQ", 64}});
    auto loop =
        ir::ParseLoop(Replace(text, "symbol seq in 1..64", std::string("symbol seq in ") + range));
    EXPECT_TRUE(loop.ok()) << loop.status();
    const ir::Schedule s = schedule::ChooseSchedule(*loop, *target).value();
    auto lowered = LowerLoop(*loop, s);
    EXPECT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_EQ(lowered->kernel.min_blocks_per_sm, s.min_blocks_per_sm);
    std::vector<int64_t> found;
    for (const char* axis : {"s", "n"}) {
      found.push_back(s.Find(axis)->steps * ir::CoordinateCount(s.Find(axis)->digits));
    }
    found.push_back(s.threads);
    found.push_back(s.min_blocks_per_sm);
    return found;
  };
  using testing::ElementsAre;
  const char *kMany = "1025..2048", *kSome = "129..1024", *kFew = "1..128";
  EXPECT_THAT(tile(kLinear, "bf16", 3584, 18944, kMany), ElementsAre(128, 128, 128, 2));
  EXPECT_THAT(tile(kLinear, "bf16", 2048, 5632, kSome), ElementsAre(64, 128, 128, 2));
  EXPECT_THAT(tile(kLinear, "bf16", 2048, 5632, kFew), ElementsAre(32, 64, 256, 2));
  EXPECT_THAT(tile(kGated, "bf16", 18944, 3584, kMany), ElementsAre(128, 64, 128, 2));
  EXPECT_THAT(tile(kLinear, "f32", 3584, 18944, kMany), ElementsAre(256, 128, 256, 1));
  EXPECT_THAT(tile(kLinear, "f32", 4608, 3584, kMany), ElementsAre(128, 128, 256, 2));
  EXPECT_THAT(tile(kLinear, "f32", 2048, 5632, kSome), ElementsAre(64, 64, 256, 2));
  EXPECT_THAT(tile(kGated, "f32", 18944, 3584, kMany), ElementsAre(128, 128, 256, 1));
  EXPECT_THAT(tile(kGated, "f32", 5632, 2048, kSome), ElementsAre(128, 64, 256, 2));
}

// Fragments of 16 x 8 x 16 and tiles one short of whole, whole, and one beyond.
TEST_P(LowerLoopTest, ProductsRoundEveryEdge) {
  for (int64_t seq : {15, 16, 17}) {
    for (int64_t n : {7, 8, 9}) {
      for (int64_t k : {15, 16, 17, 31, 37}) {
        std::string text = With(kLinear, GetParam(), {{"N", n}, {"K", k}, {"SEQ", 64}});
        Check(text, {{"batch", 1}, {"seq", seq}}, Bound(GetParam(), k));
      }
    }
  }
}

TEST_P(LowerLoopTest, EveryBatchAndLength) {
  std::string text = With(kLinear, GetParam(), {{"N", 9}, {"K", 24}, {"SEQ", 20}});
  for (int64_t batch = 1; batch <= 4; ++batch) {
    for (int64_t seq : {1, 2, 3, 5, 8, 13, 19, 20}) {
      Check(text, {{"batch", batch}, {"seq", seq}}, Bound(GetParam(), 24));
    }
  }
}

// Rows that start at every offset from the width of a vector.
TEST_P(LowerLoopTest, LeadingDimensionsOffTheVectorWidth) {
  for (int64_t off = 0; off <= 9; ++off) {
    Check(With(kPointwise, GetParam(), {{"C", 64 + off}}), {{"seq", 3}}, Bound(GetParam(), 1));
    Check(With(kRows, GetParam(), {{"C", 64 + off}}), {{"seq", 3}}, Bound(GetParam(), 64));
  }
}

constexpr char kFold[] = R"hir(hackc loop 1
fn fold "one value of each row" {
  symbol seq in 1..64
  read @x: T[seq, C]
  write @y: T[seq]
  for %s: free in seq {
    acc %fold: MONOID
    for %c: reduce in C {
      %fold <- (f32(@x[%s, %c]) * 1.0)
    }
    @y[%s] = T(%fold)
  }
}
)hir";

// Lanes beyond the row's end hold the fold's own identity: a zero would be the largest of
// all-negative rows.
TEST_P(LowerLoopTest, TailsHoldTheFoldsIdentity) {
  for (const char* monoid : {"sum", "product", "max", "min"}) {
    const bool product = std::string(monoid) == "product";
    for (int64_t c : {1, 2, 3, 5, 31, 33, 67}) {
      for (double sign : {-1.0, 1.0}) {
        auto one_signed = [=](FunctionRun& run) {
          for (double& value : run.buffers.at("x").values) {
            value = sign * (product ? 1 + std::abs(value) / 64 : 1 + std::abs(value));
          }
          run.buffers.at("x").Round();
        };
        Check(Replace(With(kFold, GetParam(), {{"C", c}}), "MONOID", monoid), {{"seq", 3}},
              Bound(GetParam(), 4 * c), "sm_90a", one_signed);
      }
    }
  }
}

constexpr char kMean[] = R"hir(hackc loop 1
fn mean "over a runtime extent" {
  symbol seq in 1..64
  read @x: T[seq, 9]
  write @y: T[9]
  for %c: free in 9 {
    acc %sum: sum
    for %s: reduce in seq {
      %sum <- (f32(@x[%s, %c]) * 1.0)
    }
    @y[%c] = T((%sum / f32(seq)))
  }
}
)hir";

TEST_P(LowerLoopTest, AMeanDividesByTheLengthOfTheRun) {
  std::string text = Replace(With(kMean, GetParam(), {}), "/ (seq)", "/ f32(seq)");
  for (int64_t seq : {1, 2, 31, 64}) Check(text, {{"seq", seq}}, Bound(GetParam(), seq));
}

constexpr char kTurn[] = R"hir(hackc loop 1
fn turn "a matrix whose rows are of runtime length" {
  symbol seq in 1..64
  read @x: T[8, seq]
  write @y: T[8, seq]
  for %r: free in 8 {
    for %s: free in seq {
      @y[%r, %s] = T((f32(@x[%r, %s]) * 2.0))
    }
  }
}
)hir";

TEST_P(LowerLoopTest, RowsOfRuntimeLength) {
  for (int64_t seq = 1; seq <= 17; ++seq) {
    Check(With(kTurn, GetParam(), {}), {{"seq", seq}}, Bound(GetParam(), 1));
  }
}

// One key beyond a chunk, and every score far below 0: a weight of exp(0) for what is masked would
// be all there is.
TEST_P(LowerLoopTest, AttentionOfStronglyNegativeScores) {
  std::string text =
      Replace(With(kAttention, GetParam(), {{"D", 16}}), "(%sc * 0.3)", "((%sc * 0.3) - 1000.0)");
  for (auto [seq, past] : {std::pair<int64_t, int64_t>{1, 16}, {1, 64}, {3, 62}, {17, 0}}) {
    // Of scores near -1000 float32 keeps 2^-14, which is what the weights are off by.
    Check(text, {{"batch", 1}, {"seq", seq}, {"past", past}},
          2 * Bound(GetParam(), past + seq) + 0x1p-12);
  }
}

TEST_P(LowerLoopTest, AttentionOfAnyGroup) {
  for (const char* group : {"1", "7", "8"}) {
    const std::string heads = std::to_string(2 * std::stoi(group));
    std::string text = With(kAttention, GetParam(), {{"D", 16}});
    text = Replace(Replace(text, "seq, 4, 16]", "seq, " + heads + ", 16]"), "free in 4 ",
                   "free in " + heads + " ");
    text = Replace(text, "(%h // 2)", std::string("(%h // ") + group + ")");
    Check(text, {{"batch", 2}, {"seq", 3}, {"past", 5}}, 2 * Bound(GetParam(), 8));
  }
}

// What the last position holds does not reach an earlier query, however large it is.
TEST_P(LowerLoopTest, AttentionDoesNotSeeTheFuture) {
  auto loop = ir::ParseLoop(With(kAttention, GetParam(), {{"D", 16}}));
  ASSERT_OK(loop);
  auto target = schedule::FindTarget("sm_90a");
  auto lowered = LowerLoop(*loop, schedule::ChooseSchedule(*loop, *target).value());
  ASSERT_OK(lowered);
  std::vector<std::vector<double>> outputs;
  for (double last : {1.0, 20000.0}) {  // a number of every dtype
    std::mt19937 rng(7);
    FunctionRun run;
    run.arithmetic = interp::Arithmetic::kHardware;
    run.symbols = {{"batch", 1}, {"seq", 4}, {"past", 5}};
    for (const ir::BufferDecl& buffer : loop->fn.buffers) {
      if (buffer.access == ir::Access::kWrite) continue;
      std::vector<double>& values =
          (run.buffers[buffer.name] = Random(buffer, run.symbols, rng)).values;
      if (buffer.name == "q") continue;
      std::fill(values.end() - values.size() / 9, values.end(), last);
    }
    ASSERT_OK(interp::RunKernel(lowered->kernel, run));
    outputs.push_back(run.buffers.at("y").values);
  }
  const size_t earlier = outputs[0].size() / 4 * 3;
  EXPECT_TRUE(std::equal(outputs[0].begin(), outputs[0].begin() + earlier, outputs[1].begin()));
  EXPECT_FALSE(
      std::equal(outputs[0].begin() + earlier, outputs[0].end(), outputs[1].begin() + earlier));
}

// The sum of squares of large half-precision inputs is beyond half precision.
TEST_P(LowerLoopTest, SquaresOfLargeInputs) {
  auto large = [](FunctionRun& run) {
    for (double& value : run.buffers.at("x").values) value = value < 0 ? -300 : 300;
  };
  for (int64_t c : {5, 256}) {
    Check(With(kRows, GetParam(), {{"C", c}}), {{"seq", 3}}, Bound(GetParam(), c), "sm_90a", large);
  }
}

TEST_P(LowerLoopTest, PowersOfEveryExponent) {
  auto positive = [](FunctionRun& run) {
    for (double& value : run.buffers.at("x").values) value = 0.5 + std::abs(value);
    run.buffers.at("x").Round();
  };
  for (const char* exponent : {"0.5", "2.0", "3.0", "-0.5"}) {
    std::string text = With(kPointwise, GetParam(), {{"C", 9}});
    text =
        Replace(text, GetParam() == std::string("f32") ? "((@x[%s, %c]) * 2.0)" : "* 2.0)", "POW");
    if (GetParam() == std::string("f32")) {
      text = Replace(text, "POW", std::string("pow(@x[%s, %c], ") + exponent + ")");
    } else {
      text = Replace(text, "((f32(@x[%s, %c]) POW",
                     std::string("(pow(f32(@x[%s, %c]), ") + exponent + ")");
    }
    Check(text, {{"seq", 3}}, Bound(GetParam(), 16), "sm_90a", positive);
  }
}

constexpr char kBatched[] = R"hir(hackc loop 1
fn batched "x w of each batch, w as [k, n]" {
  symbol batch in 1..4
  symbol seq in 1..64
  read @x: T[batch, seq, K]
  read @w: T[batch, K, N]
  write @y: T[batch, seq, N]
  for %b: free in batch {
    for %s: free in seq {
      for %n: free in N {
        acc %sum: sum
        for %k: contract in K {
          %sum <- (f32(@x[%b, %s, %k]) * f32(@w[%b, %k, %n]))
        }
        @y[%b, %s, %n] = T(%sum)
      }
    }
  }
}
)hir";

// Neither side is square, so that rows and columns cannot be swapped unseen.
TEST_P(LowerLoopTest, BatchedProductsOfNoSquare) {
  for (auto [n, k] : {std::pair<int64_t, int64_t>{18, 40}, {64, 24}, {40, 72}}) {
    Check(Replace(With(kBatched, GetParam(), {{"N", n}, {"K", k}}), "= (%sum)", "= %sum"),
          {{"batch", 3}, {"seq", 33}}, Bound(GetParam(), k));
  }
  for (auto [n, k] : {std::pair<int64_t, int64_t>{18, 32}, {37, 48}}) {
    Check(Replace(Replace(With(kBatched, GetParam(), {{"N", n}, {"K", k}}), "= (%sum)", "= %sum"),
                  "seq in 1..64", "seq in 1..8"),
          {{"batch", 3}, {"seq", 7}}, Bound(GetParam(), k));
  }
}

// Rows that one ldmatrix reads at once lie in different banks, and each at a multiple of 16 bytes.
TEST(LoweredKernels, RowsOfAMatrixLoadFallIntoDifferentBanks) {
  int loads = 0;
  for (int64_t k : {24, 64, 128, 512}) {
    auto loop = ir::ParseLoop(With(kLinear, "bf16", {{"N", 64}, {"K", k}, {"SEQ", 64}}));
    ASSERT_OK(loop);
    auto target = schedule::FindTarget("sm_90a");
    auto lowered = LowerLoop(*loop, schedule::ChooseSchedule(*loop, *target).value());
    ASSERT_OK(lowered);
    std::map<std::string, int64_t> row_bytes;
    ir::WalkStmts(lowered->kernel.fn.body, [&](const ir::Stmt& s) {
      if (const auto* alloc = ir::As<ir::Alloc>(s)) {
        row_bytes[alloc->name] =
            (alloc->extents.back() + alloc->padding) * ir::SizeOf(alloc->dtype);
      }
      const auto* load = ir::As<ir::LoadMatrix>(s);
      if (load == nullptr) return;
      ++loads;
      const int64_t stride = row_bytes.at(load->source);
      EXPECT_EQ(stride % 16, 0) << load->source;
      std::set<int64_t> banks;  // of 32, four at a time
      for (int64_t row = 0; row < 8; ++row) banks.insert(row * stride % 128 / 16);
      EXPECT_EQ(banks.size(), 8u) << load->source << ", rows of " << stride << " bytes, k " << k;
    });
  }
  EXPECT_GT(loads, 0);
}

// Names that passes make up may be the program's own already.
TEST_P(LowerLoopTest, NamesThatPassesMakeUpMayBeTaken) {
  std::string text = With(kLinear, GetParam(), {{"N", 33}, {"K", 40}, {"SEQ", 64}});
  for (const auto& [from, to] : {std::pair{"%s]", "%k_step]"},
                                 {"%s,", "%k_step,"},
                                 {"%s:", "%k_step:"},
                                 {"%n", "%s_tile"},
                                 {"%b", "%s_index"},
                                 {"%sum", "%x_in_0"},
                                 {"@w", "@x_tile_0"},
                                 {"@bias", "@y_out_1"}}) {
    text = Replace(text, from, to);
  }
  Check(text, {{"batch", 2}, {"seq", 17}}, Bound(GetParam(), 40));
}

INSTANTIATE_TEST_SUITE_P(DTypes, LowerLoopTest, testing::Values("f32", "bf16", "f16"));

}  // namespace
}  // namespace hackc::passes
