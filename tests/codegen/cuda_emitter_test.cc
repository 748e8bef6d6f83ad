// SPDX-License-Identifier: MIT
#include "compiler/codegen/cuda_emitter.h"

#include "compiler/support/cat.h"
#include "compiler/support/internal_error.h"
#include "compiler/toolchain/nvrtc.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hackc::codegen {
namespace {

using namespace hackc::ir;  // NOLINT: the whole test builds Kernel IR
using testing::HasSubstr;
using testing::Not;

constexpr const char* kArchs[] = {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"};

Expr Int(int64_t value) { return IntLit(value); }
Expr Thread() { return MakeBuiltin(BuiltinKind::kThread); }
Expr BlockX() { return MakeBuiltin(BuiltinKind::kBlockX); }
Expr Seq() { return MakeSymbol("seq"); }
Expr F32(Expr e) { return MakeCast(DType::kF32, std::move(e)); }
Expr BF16(Expr e) { return MakeCast(DType::kBF16, std::move(e)); }

Stmt Local(std::string name, DType dtype, std::vector<int64_t> extents) {
  return MakeStmt(Alloc{.name = std::move(name), .dtype = dtype, .extents = std::move(extents)});
}
Stmt SharedArray(std::string name, DType dtype, std::vector<int64_t> extents, int padding = 0) {
  return MakeStmt(Alloc{.name = std::move(name),
                        .dtype = dtype,
                        .space = MemorySpace::kShared,
                        .extents = std::move(extents),
                        .padding = padding});
}
Stmt Put(std::string buffer, std::vector<Expr> indices, Expr value, Expr guard = nullptr) {
  return MakeStmt(Store{std::move(buffer), std::move(indices), std::move(value), std::move(guard)});
}
Stmt Loop(LoopKind kind, std::string axis, Expr extent, Block body) {
  return MakeStmt(For{
      .axis = std::move(axis), .kind = kind, .extent = std::move(extent), .body = std::move(body)});
}

KernelFn Kernel(std::vector<BufferDecl> buffers, Block body, int64_t max_seq = 2048) {
  KernelFn kernel;
  kernel.fn = {"test", "a test", {{"seq", 1, max_seq}}, std::move(buffers), std::move(body)};
  kernel.grid = {CeilDiv(Seq(), 4), Int(3), Int(2)};
  return kernel;
}

// The text of `kernel`, after NVRTC took it for every arch without a warning.
std::string Compiled(const KernelFn& kernel) {
  CudaFn cuda = EmitCuda(kernel);
  for (const char* arch : kArchs) {
    auto cubin = toolchain::CompileCubin(cuda.text, cuda.entry, arch);
    EXPECT_TRUE(cubin.ok()) << cubin.status() << "\n" << cuda.text;
    if (cubin.ok()) {
      EXPECT_EQ(cubin->warnings, "") << cuda.text;
    }
  }
  return cuda.text;
}

TEST(CudaEmitter, AKernelReadsAsItsIr) {
  Block body = {
      MakeStmt(Let{"m", BlockX() * 4 + FloorDiv(Thread(), 32)}),
      MakeStmt(Let{"inside", Lt(MakeVar("m", DType::kI32), Seq())}),
      Loop(
          LoopKind::kSerial, "k", Int(2),
          {Put("y", {Axis("m"), Axis("k") * 32 + Mod(Thread(), 32)},
               BF16(F32(MakeLoad("x", DType::kBF16, {Axis("m"), Axis("k") * 32 + Mod(Thread(), 32)},
                                 MakeVar("inside", DType::kBool))) *
                    FloatLit(0.5)),
               MakeVar("inside", DType::kBool))})};
  std::string text = Compiled(Kernel({{"x", DType::kBF16, {Seq(), Int(64)}, Access::kRead},
                                      {"y", DType::kBF16, {Seq(), Int(64)}, Access::kWrite}},
                                     body));
  EXPECT_EQ(text,
            R"(typedef unsigned short bf16;
__device__ __forceinline__ float bf16_to_float(bf16 bits) {
  return __uint_as_float((unsigned)bits << 16);
}
__device__ __forceinline__ bf16 float_to_bf16(float value) {
  bf16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

// test: a test
extern "C" __global__ void __launch_bounds__(128, 1)
hackc_test(
    const bf16* __restrict__ x,
    bf16* __restrict__ y,
    int seq) {
  const int thread = threadIdx.x;
  const int block_x = blockIdx.x;
  const int m = block_x * 4 + thread / 32;
  const bool inside = m < seq;
  for (int k = 0; k < 2; ++k) {
    if (inside) y[m * 64 + k * 32 + thread % 32] = float_to_bf16(bf16_to_float(inside ? x[m * 64 + k * 32 + thread % 32] : (bf16)0) * 0.5f);
  }
}
)");
}

TEST(CudaEmitter, EveryOperatorOfEveryType) {
  Block body;
  std::vector<BufferDecl> buffers = {{"f", DType::kF32, {Int(64)}, Access::kReadWrite},
                                     {"d", DType::kF64, {Int(64)}, Access::kReadWrite},
                                     {"i", DType::kI32, {Int(64)}, Access::kReadWrite},
                                     {"l", DType::kI64, {Int(64)}, Access::kReadWrite},
                                     {"b", DType::kBool, {Int(64)}, Access::kReadWrite},
                                     {"h", DType::kF16, {Int(64)}, Access::kReadWrite},
                                     {"g", DType::kBF16, {Int(64)}, Access::kReadWrite}};
  int at = 0;
  auto next = [&] { return Int(at++ % 64); };
  for (auto [name, dtype] : {std::pair("f", DType::kF32), std::pair("d", DType::kF64)}) {
    Expr x = MakeLoad(name, dtype, {Thread()}), y = MakeLoad(name, dtype, {Thread() + 1});
    for (int op = 0; op <= static_cast<int>(UnaryOp::kAbs); ++op) {
      body.push_back(Put(name, {next()}, MakeUnary(static_cast<UnaryOp>(op), x)));
    }
    for (BinaryOp op : {BinaryOp::kAdd, BinaryOp::kSub, BinaryOp::kMul, BinaryOp::kDiv,
                        BinaryOp::kMin, BinaryOp::kMax, BinaryOp::kPow}) {
      body.push_back(Put(name, {next()}, MakeBinary(op, x, y)));
    }
    for (BinaryOp op : {BinaryOp::kLt, BinaryOp::kLe, BinaryOp::kEq, BinaryOp::kNe}) {
      body.push_back(Put("b", {next()}, MakeBinary(op, x, y)));
    }
    for (double value :
         {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
          std::numeric_limits<double>::quiet_NaN(), 1e-30, -3.0}) {
      body.push_back(Put(name, {next()}, x * FloatLit(value, dtype)));
    }
  }
  for (auto [name, dtype] : {std::pair("i", DType::kI32), std::pair("l", DType::kI64)}) {
    Expr x = MakeLoad(name, dtype, {Thread()}), y = MakeLoad(name, dtype, {Thread() + 1});
    for (BinaryOp op : {BinaryOp::kAdd, BinaryOp::kSub, BinaryOp::kMul, BinaryOp::kFloorDiv,
                        BinaryOp::kMod, BinaryOp::kMin, BinaryOp::kMax, BinaryOp::kBitAnd,
                        BinaryOp::kBitXor, BinaryOp::kShl, BinaryOp::kShr}) {
      body.push_back(Put(name, {next()}, MakeBinary(op, x, y)));
    }
    body.push_back(Put(name, {next()}, MakeUnary(UnaryOp::kNeg, x)));
    body.push_back(Put(name, {next()}, MakeUnary(UnaryOp::kAbs, x - IntLit(-4, dtype))));
  }
  Expr p = MakeLoad("b", DType::kBool, {Int(0)}), q = MakeLoad("b", DType::kBool, {Int(1)});
  for (BinaryOp op : {BinaryOp::kAnd, BinaryOp::kOr, BinaryOp::kEq, BinaryOp::kNe}) {
    body.push_back(Put("b", {next()}, MakeBinary(op, p, MakeUnary(UnaryOp::kNot, q))));
  }
  std::string text = Compiled(Kernel(buffers, body));
  EXPECT_THAT(text, HasSubstr("rsqrtf(f[thread])"));
  EXPECT_THAT(text, HasSubstr("d[thread] * -INFINITY_F64"));
  EXPECT_THAT(text, HasSubstr("floor_mod(i[thread], i[thread + 1])"));
  EXPECT_THAT(text, HasSubstr("abs(l[thread] - -4LL)"));
  EXPECT_THAT(text, HasSubstr("b[0] && !b[1]"));
}

TEST(CudaEmitter, EveryCastAndShuffle) {
  const std::pair<const char*, DType> kTypes[] = {
      {"d", DType::kF64}, {"f", DType::kF32}, {"g", DType::kBF16}, {"h", DType::kF16},
      {"l", DType::kI64}, {"i", DType::kI32}, {"b", DType::kBool}};
  std::vector<BufferDecl> buffers;
  Block body;
  for (auto [name, dtype] : kTypes) {
    buffers.push_back({name, dtype, {Int(256)}, Access::kReadWrite});
    for (auto [source, from] : kTypes) {
      body.push_back(
          Put(name, {Thread()}, MakeCast(dtype, MakeLoad(source, from, {Thread() + 1}))));
    }
    for (ShuffleKind kind : {ShuffleKind::kXor, ShuffleKind::kIndex, ShuffleKind::kDown}) {
      body.push_back(
          Put(name, {Thread()}, MakeShuffle(kind, MakeLoad(name, dtype, {Thread()}), Int(16))));
    }
  }
  std::string text = Compiled(Kernel(buffers, body));
  EXPECT_THAT(text, HasSubstr("g[thread] = float_to_bf16(f16_to_float(h[thread + 1]));"));
  EXPECT_THAT(text, HasSubstr("b[thread] = f[thread + 1] != 0;"));
  EXPECT_THAT(text, HasSubstr("__shfl_xor_sync(0xffffffffu, f[thread], 16)"));
}

TEST(CudaEmitter, AGuardedLoadOfEveryTypeIsZeroOutside) {
  Block body;
  std::vector<BufferDecl> buffers;
  for (DType dtype : {DType::kF64, DType::kF32, DType::kBF16, DType::kF16, DType::kI64, DType::kI32,
                      DType::kBool}) {
    const std::string name = Cat("x_", Name(dtype));
    buffers.push_back({name, dtype, {Seq()}, Access::kReadWrite});
    const Expr inside = Lt(Thread(), Seq());
    body.push_back(Put(name, {Thread()}, MakeLoad(name, dtype, {Thread()}, inside), inside));
  }
  EXPECT_THAT(Compiled(Kernel(buffers, body)),
              HasSubstr("x_i64[thread] = thread < seq ? x_i64[thread] : (long long)0;"));
}

TEST(CudaEmitter, TheLeastIntegersAreSums) {
  const Block body = {Put("i", {Thread()}, IntLit(INT32_MIN)),
                      Put("l", {Thread()}, IntLit(INT64_MIN, DType::kI64)),
                      Put("l", {Thread()}, IntLit(INT32_MIN, DType::kI64))};
  const std::string text = Compiled(Kernel({{"i", DType::kI32, {Int(128)}, Access::kWrite},
                                            {"l", DType::kI64, {Int(128)}, Access::kWrite}},
                                           body));
  EXPECT_THAT(text, HasSubstr("i[thread] = (-2147483647 - 1);"));
  EXPECT_THAT(text, HasSubstr("l[thread] = (-9223372036854775807LL - 1);"));
  EXPECT_THAT(text, HasSubstr("l[thread] = -2147483648LL;"));
}

TEST(CudaEmitter, NoNameIsAKeyword) {
  Block body;
  for (const char* word :
       {"nullptr",      "catch",        "explicit", "protected",   "constexpr", "noexcept",
        "typeid",       "alignof",      "decltype", "static_cast", "bitand",    "not_eq",
        "consteval",    "co_await",     "char16_t", "wchar_t",     "requires",  "export",
        "thread_local", "dynamic_cast", "concept",  "xor_eq"}) {
    body.push_back(MakeStmt(Let{word, Thread()}));
    body.push_back(Put("y", {MakeVar(word, DType::kI32)}, FloatLit(1)));
  }
  Compiled(Kernel({{"y", DType::kF32, {Int(128)}, Access::kWrite}}, body));
}

TEST(CudaEmitter, ParenthesesKeepTheTree) {
  Expr a = MakeLoad("x", DType::kF32, {Int(0)}), b = MakeLoad("x", DType::kF32, {Int(1)}),
       c = MakeLoad("x", DType::kF32, {Int(2)});
  Expr select = MakeSelect(Lt(a, b), a, MakeSelect(Lt(b, c), b, c));
  Block body = {Put("x", {Int(3)}, (a - (b - c)) * (a + b)), Put("x", {Int(4)}, a - b - c),
                Put("x", {Int(5)}, MakeUnary(UnaryOp::kNeg, MakeUnary(UnaryOp::kNeg, a))),
                Put("x", {Int(6)}, select * a)};
  std::string text = Compiled(Kernel({{"x", DType::kF32, {Int(8)}, Access::kReadWrite}}, body));
  EXPECT_THAT(text, HasSubstr("x[3] = (x[0] - (x[1] - x[2])) * (x[0] + x[1]);"));
  EXPECT_THAT(text, HasSubstr("x[4] = x[0] - x[1] - x[2];"));
  EXPECT_THAT(text, HasSubstr("x[5] = -(-x[0]);"));
  EXPECT_THAT(text, HasSubstr("x[6] = (x[0] < x[1] ? x[0] : (x[1] < x[2] ? x[1] : x[2])) * x[0];"));
}

TEST(CudaEmitter, DivisionIsPlainOnlyWhereNothingIsNegative) {
  Block body = {Put("x", {FloorDiv(Thread(), 4)}, FloatLit(1)),
                Put("x", {FloorDiv(Thread() - 2, 4) + 1}, FloatLit(2)),
                MakeStmt(Let{"n", Thread() + 3}),
                Put("x", {Mod(MakeVar("n", DType::kI32), 5)}, FloatLit(3))};
  std::string text = Compiled(Kernel({{"x", DType::kF32, {Int(64)}, Access::kWrite}}, body));
  EXPECT_THAT(text, HasSubstr("x[thread / 4] = 1.0f;"));
  EXPECT_THAT(text, HasSubstr("floor_div(thread - 2, 4)"));
  EXPECT_THAT(text, HasSubstr("x[n % 5] = 3.0f;"));
}

TEST(CudaEmitter, LargeBuffersAreIndexedInLongLong) {
  Block body = {Put("y", {Thread(), BlockX()}, MakeLoad("x", DType::kF32, {Thread(), BlockX()}))};
  auto emit = [&](int64_t max_seq) {
    return Compiled(Kernel({{"x", DType::kF32, {Seq(), Int(4096)}, Access::kRead},
                            {"y", DType::kF32, {Int(128), Seq()}, Access::kWrite}},
                           body, max_seq));
  };
  std::string text = emit(int64_t{1} << 17);  // x: 2 GiB, y: 64 MiB
  EXPECT_THAT(
      text,
      HasSubstr("y[thread * seq + block_x] = x[(long long)thread * 4096LL + (long long)block_x];"));
  EXPECT_THAT(emit((1 << 17) - 1), HasSubstr("= x[thread * 4096 + block_x];"));
}

// A cache of 8.6 * 10^9 elements and logits of 64 * 2048 * 152064: every product is of 64 bits.
TEST(CudaEmitter, VectorsAndCopiesOfLargeBuffersAreIndexedInLongLong) {
  const Expr column = Mod(Thread(), 16) * 8;
  Block body = {SharedArray("tile", DType::kBF16, {16, 128}),
                Local("r", DType::kBF16, {8}),
                MakeStmt(AsyncCopy{"tile",
                                   {FloorDiv(Thread(), 16), column},
                                   "cache",
                                   {BlockX(), Seq() - 1, column},
                                   16,
                                   nullptr}),
                MakeStmt(AsyncCommit{}),
                MakeStmt(AsyncWait{0}),
                MakeStmt(VectorLoad{
                    "r", Int(0), "cache", DType::kBF16, {BlockX(), Thread(), column}, 8, nullptr}),
                MakeStmt(VectorStore{"logits", {BlockX(), Thread() * 8}, "r", Int(0), 8, nullptr})};
  const std::string text =
      Compiled(Kernel({{"cache", DType::kBF16, {Int(512), Seq(), Int(128)}, Access::kRead},
                       {"logits", DType::kBF16, {Seq(), Int(152064)}, Access::kWrite}},
                      body, 131072));
  EXPECT_THAT(text, HasSubstr("&cache[(long long)block_x * (128LL * (long long)seq) + (long "
                              "long)(seq - 1) * 128LL + "));
  EXPECT_THAT(text, HasSubstr("&cache[(long long)block_x * (128LL * (long long)seq) + (long "
                              "long)thread * 128LL + "));
  EXPECT_THAT(text, HasSubstr("&logits[(long long)block_x * 152064LL + (long long)(thread * 8)]"));
}

TEST(CudaEmitter, SharedMemoryLiesAtItsLayout) {
  Block body = {SharedArray("a", DType::kBF16, {3, 5}, 1), SharedArray("b", DType::kF32, {32}),
                Put("b", {Mod(Thread(), 32)}, F32(MakeLoad("a", DType::kBF16, {Int(2), Int(3)}))),
                MakeStmt(Barrier{}), Put("x", {Thread()}, MakeLoad("b", DType::kF32, {Int(3)}))};
  std::string text = Compiled(Kernel({{"x", DType::kF32, {Int(128)}, Access::kWrite}}, body));
  EXPECT_THAT(
      text,
      HasSubstr("extern __shared__ __align__(16) unsigned char hackc_shared[];  // 176 bytes"));
  EXPECT_THAT(text, HasSubstr("bf16* const a = (bf16*)(hackc_shared + 0);"));
  EXPECT_THAT(text, HasSubstr("float* const b = (float*)(hackc_shared + 48);"));
  EXPECT_THAT(text, HasSubstr("b[thread % 32] = bf16_to_float(a[15]);"));
  EXPECT_THAT(text, HasSubstr("__syncthreads();"));
}

TEST(CudaEmitter, VectorsOfEveryWidth) {
  Block body;
  std::vector<BufferDecl> buffers = {{"h", DType::kBF16, {Int(4096)}, Access::kReadWrite},
                                     {"f", DType::kF32, {Int(4096)}, Access::kReadWrite}};
  Expr guard = Lt(Thread(), Seq());
  for (auto [name, dtype, widths] : {std::tuple("h", DType::kBF16, std::vector<int>{1, 2, 4, 8}),
                                     std::tuple("f", DType::kF32, std::vector<int>{1, 2, 4})}) {
    for (int width : widths) {
      std::string array = name + std::to_string(width);
      body.push_back(Local(array, dtype, {width}));
      body.push_back(
          MakeStmt(VectorLoad{array, Int(0), name, dtype, {Thread() * width}, width, guard}));
      body.push_back(
          MakeStmt(VectorStore{name, {Thread() * width + 2048}, array, Int(0), width, guard}));
    }
  }
  std::string text = Compiled(Kernel(buffers, body));
  EXPECT_THAT(
      text,
      HasSubstr("*(uint4*)&h8[0] = (thread < seq) ? *(const uint4*)&h[thread * 8] : uint4{};"));
  EXPECT_THAT(
      text, HasSubstr("if (thread < seq) *(uint2*)&h[thread * 4 + 2048] = *(const uint2*)&h4[0];"));
}

TEST(CudaEmitter, AsynchronousCopiesAndMatrixInstructions) {
  Expr row = Mod(Thread(), 16), column = FloorDiv(Thread(), 16) * 8;
  Block body = {
      SharedArray("tile", DType::kBF16, {16, 64}, 8),
      SharedArray("words", DType::kF32, {128}),
      MakeStmt(AsyncCopy{
          "tile", {row, column}, "x", {row, column}, 16, Lt(row, Seq()), CacheHint::kKeep}),
      MakeStmt(AsyncCopy{"words", {Thread()}, "w", {Thread()}, 4, nullptr}),
      MakeStmt(AsyncCommit{}),
      MakeStmt(AsyncWait{0}),
      MakeStmt(Barrier{}),
      Local("a", DType::kBF16, {16}),
      Local("b", DType::kBF16, {8}),
      Local("ah", DType::kF16, {8}),
      Local("bh", DType::kF16, {4}),
      Local("at", DType::kF32, {4}),
      Local("bt", DType::kF32, {2}),
      Local("c", DType::kF32, {8})};
  for (int i = 0; i < 8; ++i) body.push_back(Put("c", {Int(i)}, FloatLit(0)));
  for (int i = 0; i < 4; ++i)
    body.push_back(Put("at", {Int(i)}, MakeLoad("words", DType::kF32, {Thread()})));
  for (int i = 0; i < 2; ++i)
    body.push_back(Put("bt", {Int(i)}, MakeLoad("words", DType::kF32, {Thread()})));
  for (bool transposed : {false, true}) {
    body.push_back(
        MakeStmt(LoadMatrix{"a", Int(transposed ? 8 : 0), "tile", {row, Int(8)}, 4, transposed}));
    body.push_back(MakeStmt(LoadMatrix{"b", Int(0), "tile", {row, Int(0)}, 2, transposed}));
    body.push_back(MakeStmt(LoadMatrix{"b", Int(4), "tile", {row, Int(0)}, 1, transposed}));
    body.push_back(MakeStmt(LoadMatrix{"ah", Int(0), "tile", {row, Int(0)}, 4, transposed}));
    body.push_back(MakeStmt(LoadMatrix{"bh", Int(0), "tile", {row, Int(0)}, 2, transposed}));
  }
  body.push_back(
      MakeStmt(Mma{MmaShape::kM16N8K16, DType::kBF16, "c", Int(4), "a", Int(8), "b", Int(4)}));
  body.push_back(
      MakeStmt(Mma{MmaShape::kM16N8K16, DType::kF16, "c", Int(0), "ah", Int(0), "bh", Int(0)}));
  body.push_back(
      MakeStmt(Mma{MmaShape::kM16N8K8, DType::kF32, "c", Int(0), "at", Int(0), "bt", Int(0)}));
  body.push_back(
      Loop(LoopKind::kUnroll, "i", Int(8),
           {Put("y", {Thread() * 8 + Axis("i")}, MakeLoad("c", DType::kF32, {Axis("i")}))}));
  std::string text = Compiled(Kernel({{"x", DType::kBF16, {Int(16), Int(64)}, Access::kRead},
                                      {"w", DType::kF32, {Int(128)}, Access::kRead},
                                      {"y", DType::kF32, {Int(1024)}, Access::kWrite}},
                                     body));
  EXPECT_THAT(text, HasSubstr("copy_async<16, true>(&tile[thread % 16 * 72 + thread / 16 * 8], "
                              "&x[thread % 16 * 64 + thread / 16 * 8], thread % 16 < seq);"));
  EXPECT_THAT(text, HasSubstr("copy_async<4>(&words[thread], &w[thread]);"));
  EXPECT_THAT(text, HasSubstr("copy_async_wait<0>();"));
  EXPECT_THAT(text, HasSubstr("load_matrix_x4_transposed(&a[8], &tile[thread % 16 * 72 + 8]);"));
  EXPECT_THAT(text, HasSubstr("mma_m16n8k16_bf16(&c[4], &a[8], &b[4]);"));
  EXPECT_THAT(text, HasSubstr("#pragma unroll\n  for (int i = 0; i < 8; ++i) {"));
}

TEST(CudaEmitter, ClustersBranchesScalarsAndOddNames) {
  Block body = {Local("sum", DType::kF32, {}),
                Put("sum", {}, FloatLit(0)),
                MakeStmt(Let{"for", Thread()}),
                MakeStmt(Let{"x", Thread() + 1}),
                MakeStmt(Let{"a.b", Thread()}),
                MakeStmt(Let{"a_b", MakeVar("a.b", DType::kI32)}),
                MakeStmt(If{Lt(MakeVar("for", DType::kI32), Seq()),
                            {Put("x", {MakeVar("x", DType::kI32) + MakeVar("a_b", DType::kI32)},
                                 MakeLoad("sum", DType::kF32, {}))}})};
  KernelFn kernel = Kernel({{"x", DType::kF32, {Int(512)}, Access::kWrite}}, body);
  kernel.fn.name = "q/k norm";
  kernel.fn.computes = "ends the comment \\\nint bug;";
  CudaFn cuda = EmitCuda(kernel);
  EXPECT_EQ(cuda.entry, "hackc_q_k_norm");
  EXPECT_THAT(cuda.text, HasSubstr("// q/k norm: ends the comment   int bug;\n"));
  EXPECT_THAT(cuda.text, HasSubstr("float sum;"));
  EXPECT_THAT(cuda.text, HasSubstr("if (for_1 < seq) {\n    x[x_1 + a_b_1] = sum;\n  }"));
  Compiled(kernel);
  kernel.cluster = 2;
  kernel.fn.name = "clustered";
  cuda = EmitCuda(kernel);
  EXPECT_THAT(cuda.text, HasSubstr("__launch_bounds__(128, 1) __cluster_dims__(2, 1, 1)"));
  EXPECT_TRUE(toolchain::CompileCubin(cuda.text, cuda.entry, "sm_90a").ok());
}

TEST(CudaEmitter, RefusesWhatIsNoKernelIr) {
  std::vector<BufferDecl> buffers = {{"x", DType::kBF16, {Int(64)}, Access::kReadWrite}};
  Expr x = MakeLoad("x", DType::kBF16, {Thread()});
  const std::pair<Stmt, const char*> kCases[] = {
      {Put("x", {Int(0)}, x + x), "arithmetic on bf16"},
      {Put("x", {Int(0), Int(0)}, x), "2 indices, rank 1"},
      {Put("z", {Int(0)}, x), "@z is not declared"},
      {Put("x", {Int(0)}, FloatLit(1)), "store @x"},
      {MakeStmt(Accumulator{"s"}), "accumulator %s"},
      {MakeStmt(Combine{"s"}), "combine %s"},
      {Loop(LoopKind::kGridX, "m", Int(2), {}), "for %m"},
      {MakeStmt(Store{"x", {Int(0)}, x, nullptr, CopyEngine::kCpAsync}), "by cp.async"},
      {MakeStmt(VectorStore{"x", {Int(0)}, "x", Int(0), 32}), "no vector of 64 bytes"},
      {MakeStmt(AsyncCopy{"x", {Int(0)}, "x", {Int(0)}, 12}), "12 bytes"},
      {Put("x", {IntLit(int64_t{1} << 31)}, x), "2147483648 is no int"}};
  for (const auto& [statement, message] : kCases) {
    try {
      EmitCuda(Kernel(buffers, {statement}));
      ADD_FAILURE() << "accepted: " << message;
    } catch (const InternalError& error) {
      EXPECT_THAT(error.what(), HasSubstr(message));
    }
  }
}

TEST(CudaEmitter, ThePreludeHoldsOnlyWhatIsUsed) {
  Block body = {Put("x", {Thread()}, FloatLit(1))};
  std::string text = Compiled(Kernel({{"x", DType::kF32, {Int(128)}, Access::kWrite}}, body));
  EXPECT_THAT(text, Not(HasSubstr("__device__")));
  EXPECT_THAT(text, Not(HasSubstr("#include")));
}

}  // namespace
}  // namespace hackc::codegen
