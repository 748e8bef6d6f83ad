// SPDX-License-Identifier: MIT
// Loop IR to Kernel IR on single kernels: what the tile and kernel passes make of a nest is run by the Tile and
// the Kernel interpreter (races, bounds, poison) and compared with the Loop interpreter, at sizes round the
// tiles' edges, in every dtype and under several schedules.
#include "compiler/passes/lower_loop.h"

#include <cmath>
#include <functional>
#include <random>

#include "compiler/interp/kernel_interpreter.h"
#include "compiler/interp/loop_interpreter.h"
#include "compiler/interp/tile_interpreter.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/schedule/choose_schedule.h"
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
           const std::function<void(FunctionRun&)>& poison = nullptr) {
  SCOPED_TRACE(text);
  std::string at = "at";
  for (const auto& [name, value] : symbols) at += " " + name + "=" + std::to_string(value);
  SCOPED_TRACE(at);
  auto loop = ir::ParseLoop(text);
  ASSERT_OK(loop);
  auto target = schedule::FindTarget(arch);
  ASSERT_OK(target);
  auto lowered = LowerLoop(*loop, schedule::ChooseSchedule(*loop, *target));
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

INSTANTIATE_TEST_SUITE_P(DTypes, LowerLoopTest, testing::Values("f32", "bf16", "f16"));

}  // namespace
}  // namespace hackc::passes
