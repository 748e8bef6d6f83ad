// SPDX-License-Identifier: MIT
#include "compiler/interp/kernel_interpreter.h"

#include <bit>
#include <cmath>
#include <random>
#include <string>

#include "absl/strings/str_replace.h"
#include "compiler/interp/warp_matrix.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/support/cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hackc::interp {
namespace {

using ir::DType;
using testing::HasSubstr;

TensorData Random(DType dtype, std::vector<int64_t> shape, int seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  TensorData data = TensorData::Zeros(dtype, std::move(shape));
  for (double& value : data.values) value = normal(generator);
  data.Round();
  return data;
}

// A kernel of one block that reads @x: f32[64] and writes @y: f32[64].
std::string Kernel(const std::string& body, int threads = 64, const std::string& grid = "1, 1, 1") {
  return "hackc kernel 1\nfn k0 \"\" {\n  symbol n in 1..64\n  read @x: f32[64]\n  write @y: "
         "f32[64]\n"
         "  launch {grid = [" +
         grid + "], threads = " + std::to_string(threads) + "}\n" + body + "}\n";
}

absl::Status RunText(const std::string& text, FunctionRun& run, bool reverse = false) {
  auto kernel = ir::ParseKernel(text);
  if (!kernel.ok()) return kernel.status();
  run.symbols.try_emplace("n", 64);
  run.buffers.try_emplace("x", Random(DType::kF32, {64}, 1));
  run.arithmetic = Arithmetic::kHardware;
  return RunKernel(*kernel, run, {reverse});
}

std::string Error(const std::string& body, int threads = 64, const std::string& grid = "1, 1, 1") {
  FunctionRun run;
  return std::string(RunText(Kernel(body, threads, grid), run).message());
}

TEST(KernelInterpreter, ThreadsExchangeThroughSharedMemoryAcrossABarrier) {
  FunctionRun run;
  ASSERT_TRUE(RunText(Kernel(R"(
    alloc @s: f32 shared[64]
    @s[thread.x] = @x[thread.x]
    barrier
    @y[thread.x] = @s[(63 - thread.x)]
  )"),
                      run)
                  .ok());
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(run.buffers["y"].values[i], run.buffers["x"].values[63 - i]);
}

TEST(KernelInterpreter, MissingBarrierIsARace) {
  EXPECT_EQ(Error(R"(
    alloc @s: f32 shared[64]
    @s[thread.x] = @x[thread.x]
    @y[thread.x] = @s[(63 - thread.x)]
  )"),
            "kernel k0 / store @y: @s[63]: race: read of a written element by thread 0 of block 0 "
            "after thread "
            "63 of block 0 with no barrier between");
}

TEST(KernelInterpreter, SlotWrittenAgainWhileOthersStillReadIsARace) {
  EXPECT_THAT(Error(R"(
    alloc @s: f32 shared[64]
    for %i: free serial in 2 {
      @s[thread.x] = @x[thread.x]
      barrier
      let %v = @s[(63 - thread.x)]
    }
  )"),
              HasSubstr("for %i / store @s: @s[0]: race: write of a read element by thread 0"));
  EXPECT_EQ(Error(R"(
    alloc @s: f32 shared[64]
    for %i: free serial in 2 {
      @s[thread.x] = @x[thread.x]
      barrier
      let %v = @s[(63 - thread.x)]
      barrier
    }
  )"),
            "");
}

TEST(KernelInterpreter, TwoThreadsWritingOneElementRace) {
  EXPECT_THAT(
      Error("@y[(thread.x // 2)] = 1.0\n"),
      HasSubstr(
          "store @y: @y[0]: race: second write by thread 1 of block 0 after thread 0 of block 0"));
  EXPECT_THAT(Error("@y[thread.x] = 1.0\n", 64, "2, 1, 1"),
              HasSubstr("race: second write by thread 0 of block 1 after thread 0 of block 0"));
}

TEST(KernelInterpreter, BlocksMayRunInAnyOrder) {
  const std::string text =
      Kernel("@y[((block.x * 32) + thread.x)] = @x[((block.x * 32) + thread.x)]\n", 32, "2, 1, 1");
  for (bool reverse : {false, true}) {
    FunctionRun run;
    ASSERT_TRUE(RunText(text, run, reverse).ok());
    EXPECT_EQ(run.buffers["y"].values, run.buffers["x"].values);
  }
}

TEST(KernelInterpreter, BarrierMustBeReachedByAll) {
  EXPECT_EQ(Error("if (thread.x < 32) { barrier }"),
            "kernel k0 / if (thread.x < 32) / barrier: barrier reached by 32 of 64 threads");
  EXPECT_EQ(Error("for %i: free serial in (thread.x // 32) { barrier }"),
            "kernel k0 / for %i / barrier: barrier reached by 32 of 64 threads");
}

TEST(KernelInterpreter, PoisonIsFound) {
  EXPECT_EQ(Error("alloc @s: f32 shared[64] @y[thread.x] = @s[thread.x]"),
            "kernel k0 / store @y: @s[0] is read by thread 0 before it was written");
  EXPECT_EQ(
      Error("alloc @r: f32 local[2] if (thread.x == 3) { @y[thread.x] = @r[1] }"),
      "kernel k0 / if (thread.x == 3) / store @y: @r[1] is read by thread 3 before it was written");
  // An allocation in a loop is new in each iteration.
  EXPECT_THAT(Error(R"(for %i: free serial in 2 {
      alloc @r: f32 local[1]
      if (%i == 1) { @y[thread.x] = @r[0] }
      @r[0] = 1.0
    })"),
              HasSubstr("before it was written"));
}

TEST(KernelInterpreter, BoundsAreThoseOfEachDimension) {
  EXPECT_EQ(Error("@y[(thread.x + 1)] = 1.0"),
            "kernel k0 / store @y: @y: index 64 of dimension 0 is outside extent 64");
  EXPECT_EQ(Error("alloc @s: f32 shared[8, 8] padding 4\n @s[0, 8] = 1.0"),
            "kernel k0 / store @s: @s: index 8 of dimension 1 is outside extent 8");
  EXPECT_EQ(Error("@y[thread.x] = @x[(thread.x + 1) if (thread.x < 63)]"), "");
  EXPECT_EQ(Error("@y[thread.x] = 1.0 when (thread.x < n)\n @y[99] = 1.0 when (thread.x == 99)"),
            "");
}

TEST(KernelInterpreter, ReadOnlyBufferIsNotWritten) {
  EXPECT_THAT(Error("@x[thread.x] = 1.0"), HasSubstr("@x is written but declared `read`"));
}

TEST(KernelInterpreter, VectorAccessMustBeAligned) {
  EXPECT_THAT(Error(R"(alloc @r: f32 local[4]
    vector_load {target = @r, target_index = 0, source = @x, dtype = f32, indices = [(thread.x + 2)], width = 4, guard = (thread.x == 0)})"),
              HasSubstr("vector_load @r: @x[2] lies at byte 8, which is not a multiple of 16"));
  FunctionRun run;
  ASSERT_TRUE(RunText(Kernel(R"(alloc @r: f32 local[4]
    vector_load {target = @r, target_index = 0, source = @x, dtype = f32, indices = [(thread.x * 4)], width = 4, guard = (thread.x < 8)}
    vector_store {target = @y, indices = [(thread.x * 4)], source = @r, source_index = 0, width = 4})",
                             16),
                      run)
                  .ok());
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(run.buffers["y"].values[i], i < 32 ? run.buffers["x"].values[i] : 0);
}

TEST(KernelInterpreter, VectorAccessEndsWithItsRow) {
  EXPECT_THAT(Error(R"(alloc @r: f32 local[4]
    vector_load {target = @r, target_index = 0, source = @x, dtype = f32, indices = [(thread.x * 4)], width = 4})"),
              HasSubstr("index 64 (4 elements) of dimension 0 is outside extent 64"));
}

TEST(KernelInterpreter, ShufflesReduceAWarp) {
  FunctionRun run;
  ASSERT_TRUE(RunText(Kernel(R"(
    let %a = (@x[thread.x] + shuffle_xor(@x[thread.x], 16))
    let %b = (%a + shuffle_xor(%a, 8))
    let %c = (%b + shuffle_xor(%b, 4))
    let %d = (%c + shuffle_xor(%c, 2))
    @y[thread.x] = (%d + shuffle_xor(%d, 1))
  )"),
                      run)
                  .ok());
  for (int warp = 0; warp < 2; ++warp) {
    double sum = 0;
    for (int i = 0; i < 32; ++i) sum += run.buffers["x"].values[warp * 32 + i];
    for (int i = 0; i < 32; ++i) EXPECT_NEAR(run.buffers["y"].values[warp * 32 + i], sum, 1e-5);
  }
  EXPECT_THAT(Error("if (thread.x < 40) { let %a = shuffle_xor(1.0, 16) }"),
              HasSubstr("shuffle reached by only some threads of the warp of thread 32"));
  FunctionRun down;
  ASSERT_TRUE(RunText(Kernel("@y[thread.x] = shuffle_down(@x[thread.x], 1)"), down).ok());
  EXPECT_EQ(down.buffers["y"].values[4], down.buffers["x"].values[5]);
  EXPECT_EQ(down.buffers["y"].values[31], down.buffers["x"].values[31]);
  FunctionRun index;
  ASSERT_TRUE(RunText(Kernel("@y[thread.x] = shuffle_index(@x[thread.x], 7)"), index).ok());
  EXPECT_EQ(index.buffers["y"].values[40], index.buffers["x"].values[39]);
}

constexpr char kCopy[] = R"(alloc @s: f32 shared[64]
    async_copy {target = @s, target_indices = [(thread.x * 4)], source = @x, source_indices = [(thread.x * 4)], bytes = 16, guard = (thread.x < 12)}
    async_commit
)";

TEST(KernelInterpreter, AsyncCopyIsSeenAfterWaitAndBarrier) {
  FunctionRun run;
  absl::Status status = RunText(Kernel(std::string(kCopy) + R"(async_wait {pending = 0} barrier
    for %i: free unroll in 4 { @y[((%i * 16) + thread.x)] = @s[((%i * 16) + thread.x)] })",
                                       16),
                                run);
  ASSERT_TRUE(status.ok()) << status;
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(run.buffers["y"].values[i], i < 48 ? run.buffers["x"].values[i] : 0);
}

TEST(KernelInterpreter, AsyncCopyNeedsItsWaitAndItsBarrier) {
  EXPECT_THAT(Error(std::string(kCopy) + "barrier\n @y[thread.x] = @s[thread.x]", 16),
              HasSubstr("while an asynchronous copy into it is in flight"));
  EXPECT_THAT(
      Error(std::string(kCopy) + "async_wait {pending = 1}\nbarrier\n @y[thread.x] = @s[thread.x]",
            16),
      HasSubstr("while an asynchronous copy into it is in flight"));
  EXPECT_THAT(
      Error(std::string(kCopy) + "async_wait {pending = 0}\n @y[thread.x] = @s[thread.x]", 16),
      HasSubstr("race: read of a written element by thread 1"));
}

TEST(KernelInterpreter, AsyncCopyIntoASlotStillReadIsARace) {
  const std::string loop = R"(alloc @s: f32 shared[16]
    for %i: free serial in 2 {
      async_copy {target = @s, target_indices = [thread.x], source = @x, source_indices = [((%i * 16) + thread.x)], bytes = 4}
      async_commit
      async_wait {pending = 0}
      barrier
      @y[((%i * 16) + thread.x)] = @s[(15 - thread.x)]
      BARRIER
    })";
  auto with = [&](std::string end) {
    return std::string(loop).replace(loop.find("BARRIER"), 7, end);
  };
  EXPECT_THAT(Error(with(""), 16), HasSubstr("race: write of a read element by thread 0"));
  EXPECT_EQ(Error(with("barrier"), 16), "");
}

// One warp multiplies a[16, k] by b[k, 8] through fragments loaded element by element as the PTX
// manual says.
std::string MmaKernel(DType dtype, int k) {
  const std::string t(Name(dtype));
  const std::string shape = k == 16 ? "m16n8k16" : "m16n8k8";
  std::string body =
      "alloc @a: " + t + " local[8]\nalloc @b: " + t + " local[4]\nalloc @c: f32 local[4]\n";
  const std::string g = "(thread.x // 4)", u = "(thread.x % 4)";
  auto load = [&](std::string array, int i, std::string row, std::string column, std::string from) {
    body +=
        "@" + array + "[" + std::to_string(i) + "] = @" + from + "[" + row + ", " + column + "]\n";
  };
  auto plus = [](std::string a, int b) { return "(" + a + " + " + std::to_string(b) + ")"; };
  if (k == 16) {
    for (int i = 0; i < 8; ++i) {
      load("a", i, plus(g, i == 0 || i == 1 || i == 4 || i == 5 ? 0 : 8),
           plus("(" + u + " * 2)", (i & 1) + (i < 4 ? 0 : 8)), "left");
    }
    for (int i = 0; i < 4; ++i)
      load("b", i, plus("(" + u + " * 2)", (i & 1) + (i < 2 ? 0 : 8)), g, "right");
  } else {
    for (int i = 0; i < 4; ++i)
      load("a", i, plus(g, i == 0 || i == 2 ? 0 : 8), plus(u, i < 2 ? 0 : 4), "left");
    for (int i = 0; i < 2; ++i) load("b", i, plus(u, 4 * i), g, "right");
  }
  for (int i = 0; i < 4; ++i) body += "@c[" + std::to_string(i) + "] = 1.0\n";
  body += "mma {shape = " + shape + ", dtype = " + t +
          ", accumulator = @c, accumulator_index = 0, a = @a, a_index = 0, b = @b, b_index = 0}\n";
  for (int i = 0; i < 4; ++i) {
    body += "@out[" + plus(g, i < 2 ? 0 : 8) + ", " + plus("(" + u + " * 2)", i & 1) + "] = @c[" +
            std::to_string(i) + "]\n";
  }
  const std::string ks = std::to_string(k);
  return "hackc kernel 1\nfn k0 \"\" {\nread @left: " + t + "[16, " + ks + "]\nread @right: " + t +
         "[" + ks + ", 8]\nwrite @out: f32[16, 8]\nlaunch {grid = [1, 1, 1], threads = 32}\n" +
         body + "}";
}

class MmaTest : public testing::TestWithParam<DType> {};

TEST_P(MmaTest, EqualsAReferenceProduct) {
  const DType dtype = GetParam();
  const int k = dtype == DType::kF32 ? 8 : 16;
  FunctionRun run;
  run.buffers["left"] = Random(dtype, {16, k}, 3);
  run.buffers["right"] = Random(dtype, {k, 8}, 4);
  ASSERT_TRUE(RunText(MmaKernel(dtype, k), run).ok());
  auto operand = [&](double value) {  // tf32 keeps 10 of the 23 bits after the point
    if (dtype != DType::kF32) return value;
    const double scale = std::ldexp(1.0, 10 - std::ilogb(value));
    return std::trunc(value * scale) / scale;
  };
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 8; ++n) {
      double sum = 1;
      for (int i = 0; i < k; ++i)
        sum += operand(run.buffers["left"].At({m, i})) * operand(run.buffers["right"].At({i, n}));
      EXPECT_NEAR(run.buffers["out"].At({m, n}), sum, 1e-6 * (1 + std::abs(sum))) << m << ", " << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, MmaTest, testing::Values(DType::kBF16, DType::kF16, DType::kF32));

TEST(KernelInterpreter, MmaNeedsTheWholeWarp) {
  std::string text = MmaKernel(DType::kBF16, 16);
  text.replace(text.find("mma {"), 0, "if (thread.x < 16) { ");
  text.replace(text.find("b_index = 0}") + 12, 0, " }");
  FunctionRun run;
  run.buffers["left"] = Random(DType::kBF16, {16, 16}, 3);
  run.buffers["right"] = Random(DType::kBF16, {16, 8}, 4);
  EXPECT_THAT(std::string(RunText(text, run).message()),
              HasSubstr("mma reached by only some threads of the warp"));
}

// Loads the four quarters of a 16 x 16 tile, so that each lane holds its mma `a` fragment.
std::string LoadMatrixKernel(bool transposed, int padding,
                             const std::string& column = "((thread.x // 16) * 8)") {
  return std::string(
             "hackc kernel 1\nfn k0 \"\" {\nread @x: bf16[16, 16]\nwrite @y: bf16[32, 8]\n") +
         "launch {grid = [1, 1, 1], threads = 32}\nalloc @s: bf16 shared[16, 16] padding " +
         std::to_string(padding) +
         "\nalloc @r: bf16 local[8]\n"
         "for %i: free serial in 8 { @s[((%i * 2) + (thread.x // 16)), (thread.x % 16)] = "
         "@x[((%i * 2) + (thread.x // 16)), (thread.x % 16)] }\nbarrier\n"
         "load_matrix {target = @r, target_index = 0, source = @s, indices = [(thread.x % 16), " +
         column + "], count = 4, transposed = " + (transposed ? "true" : "false") +
         "}\n"
         "for %j: free unroll in 8 { @y[thread.x, %j] = @r[%j] }\n}";
}

TEST(KernelInterpreter, LoadMatrixFillsTheFragmentOfA) {
  for (bool transposed : {false, true}) {
    FunctionRun run;
    run.buffers["x"] = Random(DType::kBF16, {16, 16}, 5);
    absl::Status status = RunText(LoadMatrixKernel(transposed, 8), run);
    ASSERT_TRUE(status.ok()) << status;
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < 8; ++i) {
        // Matrix i / 2 of the tile: rows 0, 8, 0, 8 and columns 0, 0, 8, 8.
        const int top = i / 2 % 2 * 8, left = i / 4 * 8;
        const int outer = lane / 4, inner = lane % 4 * 2 + i % 2;
        const int row = top + (transposed ? inner : outer),
                  column = left + (transposed ? outer : inner);
        EXPECT_EQ(run.buffers["y"].At({lane, i}), run.buffers["x"].At({row, column}))
            << lane << ", " << i;
      }
    }
  }
}

TEST(KernelInterpreter, LoadMatrixRowsAreAlignedAndInside) {
  FunctionRun run;
  run.buffers["x"] = Random(DType::kBF16, {16, 16}, 5);
  EXPECT_THAT(std::string(RunText(LoadMatrixKernel(false, 4), run).message()),
              HasSubstr("@s[1, 0] lies at byte 40, which is not a multiple of 16"));
  EXPECT_THAT(
      std::string(RunText(LoadMatrixKernel(false, 8, "((thread.x // 8) * 8)"), run).message()),
      HasSubstr("index 16 (8 elements) of dimension 1 is outside extent 16"));
}

TEST(KernelInterpreter, ArithmeticIsThatOfFloat32) {
  FunctionRun run;
  run.buffers["x"] = TensorData::Filled(DType::kF32, {64}, 16777216);  // 2^24: adding 1 is lost
  ASSERT_TRUE(RunText(Kernel("@y[thread.x] = ((@x[thread.x] + 1.0) - @x[thread.x])"), run).ok());
  EXPECT_EQ(run.buffers["y"].values[0], 0);
}

TEST(KernelInterpreter, CastsToIntegersAreThoseOfTheGpu) {
  FunctionRun run;
  run.buffers["x"] = TensorData::Zeros(DType::kF32, {64});
  const std::vector<std::pair<std::string, double>> kCases = {
      {"(i32((@x[0] + 3e9)) - 2147483600)", 47},
      {"(i32((@x[0] - 3e9)) + 2147483600)", -48},
      {"(i32((@x[0] + inf)) - 2147483600)", 47},
      {"i32((@x[0] / @x[0]))", 0},
      {"i32((@x[0] - 1.75))", -1},
      {"(i32((f64(@x[0]) / f64(@x[0]))) + 2147483600)", -48},
      {"i32((i64(i32((@x[0] + 5.0))) * 4294967297l))", 5},
      {"(i32((i64(i32((@x[0] + 1.0))) * 2147483648l)) + 2147483600)", -48},
      {"i32(((i64((@x[0] + 1e30)) - 9223372036854775807l) + 3l))", 3},
      {"i32(((i64((@x[0] / @x[0])) + 9223372036854775807l) + 3l))", 2},
      {"i32(bool((@x[0] / @x[0])))", 1},
  };
  std::string body;
  for (size_t i = 0; i < kCases.size(); ++i) {
    body += Cat("if (thread.x == ", i, ") {\n@y[", i, "] = f32(", kCases[i].first, ")\n}\n");
  }
  const absl::Status status = RunText(Kernel(body), run);
  ASSERT_TRUE(status.ok()) << status;
  for (size_t i = 0; i < kCases.size(); ++i) {
    EXPECT_EQ(run.buffers["y"].values[i], kCases[i].second) << kCases[i].first;
  }
}

// In whatever order the warps run.
testing::Matcher<std::vector<std::string>> InEachOrder(const std::string& text) {
  return testing::Each(HasSubstr(text));
}
std::vector<std::string> ErrorsOfWarps(const std::string& body) {
  std::vector<std::string> errors;
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    FunctionRun run;
    run.symbols["n"] = 64;
    run.buffers["x"] = Random(DType::kF32, {64}, 1);
    const auto kernel = ir::ParseKernel(Kernel(body, 128));
    if (!kernel.ok()) return {std::string(kernel.status().message())};
    errors.emplace_back(RunKernel(*kernel, run, {.schedule_seed = seed}).message());
  }
  return errors;
}

TEST(KernelInterpreter, AnAtomicOfAnotherWarpIsNoEarlierWrite) {
  const std::string add = R"(
    alloc @s: f32 shared[1]
    @s[0] = 0.0 when (thread.x == 0)
    barrier
    proxy_fence
    if (((thread.x % 32) == 0)) {
      atomic_add {buffer = @s, indices = [0], value = 1.0}
    })";
  EXPECT_THAT(ErrorsOfWarps(add + "\n@y[0] = @s[0] when (thread.x == 32)\n"),
              InEachOrder("@s[0]: race: "));
  EXPECT_THAT(ErrorsOfWarps(add + "\n@s[0] = 1.0 when (thread.x == 32)\n"),
              InEachOrder("@s[0]: race: "));
  EXPECT_THAT(ErrorsOfWarps(add + "\nbarrier\n@y[0] = @s[0] when (thread.x == 32)\n"),
              testing::Each(""));
  EXPECT_THAT(ErrorsOfWarps(add + "\nbarrier\n@s[0] = 2.0 when (thread.x == 32)\n"
                                  "@y[0] = @s[0] when (thread.x == 32)\n"),
              testing::Each(""));
  // Where the thread that reads was the last to add, the one before it still counts.
  const std::string two = absl::StrReplaceAll(
      add, {{"((thread.x % 32) == 0)", "((thread.x == 0) || (thread.x == 32))"}});
  EXPECT_THAT(ErrorsOfWarps(two + "\n@y[0] = @s[0] when (thread.x == 32)\n"),
              InEachOrder("@s[0]: race: "));
}

TEST(KernelInterpreter, BulkLoadsAreWaitedFor) {
  const std::string load = R"(
    tensor_map {name = @x_map, buffer = @x, dims = [64], strides = [], box = [64], swizzle = 0}
    alloc @tile: f32 shared[64] align 128
    alloc @full: i64 mbarrier[1]
    mbarrier_init {barrier = @full, count = 1}
    barrier
    if (thread.x == 0) {
      mbarrier_arrive {barrier = @full, index = 0, bytes = 256}
      bulk_load {target = @tile, target_indices = [0], map = @x_map, coordinates = [0], barrier = @full, barrier_index = 0}
    }
)";
  EXPECT_THAT(ErrorsOfWarps(load),
              InEachOrder("the block ends and nothing has waited at @full[0] for bulk loads"));
  EXPECT_THAT(ErrorsOfWarps(load + "mbarrier_wait {barrier = @full, index = 0, parity = 0}\n"),
              testing::Each(""));
}

TEST(KernelInterpreter, RoundingToBFloat16IsTheSameOnBothWays) {
  std::mt19937 generator(9);
  for (int i = 0; i < 200000; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(generator()));
    if (std::isnan(value)) continue;
    EXPECT_EQ(RoundStored(Arithmetic::kHardware, DType::kBF16, value), RoundTo(DType::kBF16, value))
        << value;
  }
  for (float value :
       {0x1.01p0f, 0x1.03p0f, 0x1.010002p0f, 0x1.ffp127f, 0x1p-149f, -0.0f, 0x1.8p-134f}) {
    EXPECT_EQ(RoundStored(Arithmetic::kHardware, DType::kBF16, value), RoundTo(DType::kBF16, value))
        << value;
  }
}

TEST(KernelInterpreter, AccumulatorsAreOfOneThread) {
  FunctionRun run;
  absl::Status status = RunText(Kernel(R"(
    acc %sum: sum
    acc %best: max[2]
    for %i: reduce serial in (thread.x + 1) {
      %sum <- @x[%i]
      %best[(%i % 2)] <- @x[%i]
    }
    @y[thread.x] = select((thread.x == 0), %sum, (%sum + @best[1]))
  )"),
                                run);
  ASSERT_TRUE(status.ok()) << status;
  const std::vector<double>& x = run.buffers["x"].values;
  EXPECT_EQ(run.buffers["y"].values[0], x[0]);
  EXPECT_NEAR(run.buffers["y"].values[3], x[0] + x[1] + x[2] + x[3] + std::max(x[1], x[3]), 1e-6);
}

TEST(KernelInterpreter, InputsMustFit) {
  FunctionRun run;
  run.buffers["x"] = TensorData::Zeros(DType::kF32, {63});
  EXPECT_EQ(RunText(Kernel(""), run).message(), "k0: buffer @x is f32[64], given f32[63]");
  run.symbols["n"] = 65;
  EXPECT_EQ(RunText(Kernel(""), run).message(), "k0: symbol n = 65 is outside 1..64");
}

}  // namespace
}  // namespace hackc::interp
