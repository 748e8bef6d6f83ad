// SPDX-License-Identifier: MIT
// hackc-bench-faults [GPU]: kernels that go wrong in every way, on a real GPU, through the bench
// process of the hackc-server that lies beside this program. Prints one line for each; exit code 0
// when every fault was blamed as it should be and the right kernel after it was timed.
// tests/gpu/bench_process.py runs it.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/compile.h"
#include "compiler/support/status_macros.h"
#include "server/convert.h"
#include "server/gpu_probe.h"
#include "server/timing_report.h"
#include "server/worker_pool.h"
#include "server/worker_process.h"

namespace hackc::server {
namespace {

using v1::worker::BenchResult;

// BODY runs once in each thread, after the thread has written its own of y[i] = 2 * x[i], i below
// n.
constexpr char kText[] = R"(
extern "C" __global__ void bench_case(const float* x, float* y, int seq) {
  const int n = seq * 64;
  const int first = blockIdx.x * 128 + threadIdx.x;
  for (int i = first; i < n; i += gridDim.x * 128) y[i] = 2 * x[i];
  __syncthreads();
  BODY
}
)";

struct Case {
  const char* name;
  const char* body;
  v1::worker::Fault fault;
};
constexpr Case kCases[] = {
    {"right", "", v1::worker::NONE},
    {"wrong", "if (first == n - 1) y[n - 1] = 0;", v1::worker::WRONG_RESULT},
    {"unwritten", "if (first == 5) y[5] = __int_as_float(-1);", v1::worker::WRONG_RESULT},
    {"behind", "if (first == 0) y[n] = 7;", v1::worker::RED_ZONE},
    {"before", "if (first == 0) y[-1] = 7;", v1::worker::RED_ZONE},
    {"far outside", "if (first == 0) y[1LL << 42] = 7;", v1::worker::CUDA_ERROR},
    {"trap", "if (first == 0) asm volatile(\"trap;\");", v1::worker::CUDA_ERROR},
    {"endless", "while (*(volatile const float*)x == *(volatile const float*)x) {}",
     v1::worker::HANG},
};

program::Kernel Contract(const std::string& arch) {
  using program::DimExpr;
  program::Kernel kernel;
  kernel.name = kernel.entry = "bench_case";
  kernel.arch = arch;
  kernel.block = {128, 1, 1};
  const DimExpr rows{.op = DimExpr::Op::kSymbol, .symbol = "seq"};
  kernel.grid = {DimExpr{.value = 256}, DimExpr{.value = 1}, DimExpr{.value = 1}};
  using Kind = program::Param::Kind;
  kernel.params = {{Kind::kBuffer, "x", 0, 8, 16},
                   {Kind::kBuffer, "y", 8, 8, 16, /*written=*/true},
                   {Kind::kSymbolI32, "seq", 16, 4, 0, false, "seq"}};
  kernel.valid = {{"seq", 1, 100'000}};
  kernel.bytes_moved = {.op = DimExpr::Op::kMul, .args = {rows, {.value = 512}}};
  kernel.operations = {.op = DimExpr::Op::kMul, .args = {rows, {.value = 64}}};
  return kernel;
}

absl::StatusOr<std::string> Compile(const std::string& body, const program::Kernel& kernel) {
  KernelSource source;
  source.kernel = kernel;
  source.cuda = absl::StrReplaceAll(kText, {{"BODY", body}});
  HACKC_ASSIGN_OR_RETURN(CompiledKernel compiled, CompileKernel(source));
  return std::move(compiled.bytes);
}

absl::StatusOr<v1::worker::Request> MakeCall(const std::string& body, const std::string& arch) {
  const program::Kernel kernel = Contract(arch);
  Reference uses;
  const program::DimExpr rows{.op = program::DimExpr::Op::kSymbol, .symbol = "seq"};
  uses.buffers = {{program::DType::kFloat32, {rows, {.value = 64}}, /*read=*/true, false, {}},
                  {program::DType::kFloat32, {rows, {.value = 64}}, false, /*written=*/true, {}}};
  v1::worker::Request request;
  v1::worker::BenchCall* call = request.mutable_bench();
  *call->mutable_uses() = ToProto(uses);
  call->mutable_uses()->clear_source();
  *call->mutable_kernel() = *call->mutable_reference() = ToProto(kernel);
  HACKC_ASSIGN_OR_RETURN(*call->mutable_cubin(), Compile(body, kernel));
  HACKC_ASSIGN_OR_RETURN(*call->mutable_reference_cubin(), Compile("", kernel));
  HACKC_ASSIGN_OR_RETURN(const Rates rates, TargetRates(arch));
  call->set_bytes_per_second(rates.bytes_per_second);
  call->set_operations_per_second(rates.matrix_operations_per_second);
  (*call->add_checked()->mutable_symbols())["seq"] = 37;
  v1::worker::BenchCall::Shape* timed = call->add_timed();
  timed->set_label("largest");
  (*timed->mutable_symbols())["seq"] = 100'000;
  return request;
}

BenchResult Measure(WorkerPool& pool, const v1::worker::Request& request) {
  absl::StatusOr<v1::worker::Reply> reply = pool.Run({.request = request});
  if (reply.ok()) return reply->bench();
  BenchResult lost;
  lost.set_fault(absl::IsDeadlineExceeded(reply.status()) ? v1::worker::HANG : v1::worker::CRASH);
  lost.set_detail(std::string(reply.status().message()));
  return lost;
}

absl::StatusOr<bool> Run(int gpu) {
  HACKC_ASSIGN_OR_RETURN(const GpuInfo info, ProbeGpu(gpu));
  std::cout << info.name << ", driver " << info.driver << ", " << info.arch << "\n";
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string server = (self.parent_path() / "hackc-server").string();
  WorkerPool pool(1,
                  [&] {
                    return std::make_unique<WorkerProcess>(
                        WorkerProcessOptions{.argv = {server, "--bench", std::to_string(gpu)}});
                  },
                  {.bench = std::chrono::seconds(8), .attempts = 1});
  HACKC_ASSIGN_OR_RETURN(const v1::worker::Request right, MakeCall("", info.arch));
  bool good = true;
  for (const Case& one : kCases) {
    HACKC_ASSIGN_OR_RETURN(const v1::worker::Request request, MakeCall(one.body, info.arch));
    const auto start = std::chrono::steady_clock::now();
    const BenchResult result = Measure(pool, request), next = Measure(pool, right);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const bool as_wanted =
        result.fault() == one.fault && next.fault() == v1::worker::NONE && next.times_size() == 1;
    good &= as_wanted;
    std::cout << (as_wanted ? "ok      " : "NOT SO  ") << one.name << ": "
              << FaultName(result.fault()) << " " << result.detail() << "; then "
              << FaultName(next.fault()) << " "
              << (next.times_size() ? absl::StrCat(next.times(0).median_us(), " us")
                                    : next.detail())
              << " (" << took.count() << " s)" << std::endl;
  }
  return good;
}

}  // namespace
}  // namespace hackc::server

int main(int argc, char** argv) {
  const absl::StatusOr<bool> good = hackc::server::Run(argc > 1 ? std::atoi(argv[1]) : 0);
  if (!good.ok()) std::cerr << "hackc-bench-faults: " << good.status().message() << std::endl;
  return good.ok() && *good ? 0 : 1;
}
