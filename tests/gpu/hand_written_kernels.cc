// SPDX-License-Identifier: MIT
// Kernels of tests/data/kernels on a GPU, each against the Kernel interpreter on the same random
// data.
//
//   hackc-gpu-kernels [--json OUT.json] [--seed N] FILE.hir...
//
// Prints a line each. Exit code 0 all agree, 1 something differs or fails, 77 no GPU of sm_90.
#include <unistd.h>

#include <bit>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/runtime/cuda_driver.h"
#include "client/runtime/device_memory.h"
#include "client/runtime/tensor_map.h"
#include "compiler/codegen/cuda_emitter.h"
#include "compiler/interp/kernel_interpreter.h"
#include "compiler/interp/warp_matrix.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/shared_layout.h"
#include "compiler/ir/stmt_text.h"
#include "compiler/toolchain/nvrtc.h"
#include "nlohmann/json.hpp"
#include "tools/opt/case_file.h"

namespace hackc {
namespace {

using client::CudaDriver;
using client::DeviceMemory;
using interp::TensorData;

constexpr int kSkipped = 77;
constexpr int kSecondsForAKernel = 30;

std::string running;  // for the watchdog, which must not touch anything else
void OnAlarm(int) {
  std::string text = "hangs: " + running + "\n";
  [[maybe_unused]] auto written = write(STDERR_FILENO, text.data(), text.size());
  _exit(1);
}

int64_t Value(const ir::Expr& e, const std::map<std::string, int64_t>& symbols) {
  return ir::AsInt(ir::Rewrite(e,
                               [&](const ir::Expr& node) -> ir::Expr {
                                 const auto* symbol = ir::As<ir::Symbol>(node);
                                 return symbol ? ir::IntLit(symbols.at(symbol->name)) : nullptr;
                               }))
      .value();
}

uint64_t Bits(ir::DType dtype, double value) {
  const auto single = std::bit_cast<uint32_t>(static_cast<float>(value));
  if (dtype == ir::DType::kF32) return single;
  if (dtype == ir::DType::kBF16) return single >> 16;  // exact: the data is rounded
  if (dtype == ir::DType::kF16) return std::bit_cast<uint16_t>(static_cast<_Float16>(value));
  return static_cast<uint64_t>(static_cast<int64_t>(value));
}

double FromBits(ir::DType dtype, uint64_t bits) {
  if (dtype == ir::DType::kF32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (dtype == ir::DType::kBF16) return std::bit_cast<float>(static_cast<uint32_t>(bits << 16));
  if (dtype == ir::DType::kF16)
    return static_cast<double>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
  if (dtype == ir::DType::kI32) return static_cast<int32_t>(bits);
  return static_cast<double>(static_cast<int64_t>(bits));
}

std::string ToBytes(const TensorData& data) {
  const int size = ir::SizeOf(data.dtype);
  std::string bytes(data.size() * size, '\0');
  for (int64_t i = 0; i < data.size(); ++i) {
    const uint64_t bits = Bits(data.dtype, data.values[i]);
    std::memcpy(&bytes[i * size], &bits, size);
  }
  return bytes;
}

TensorData FromBytes(TensorData shape, const std::string& bytes) {
  const int size = ir::SizeOf(shape.dtype);
  for (int64_t i = 0; i < shape.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, &bytes[i * size], size);
    shape.values[i] = FromBits(shape.dtype, bits);
  }
  return shape;
}

// Random data that tf32 holds exactly.
interp::FunctionRun Inputs(const ir::Function& fn, const std::map<std::string, int64_t>& symbols,
                           uint64_t seed) {
  interp::FunctionRun run{symbols, {}, interp::Arithmetic::kHardware};
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  for (const ir::BufferDecl& buffer : fn.buffers) {
    if (buffer.access == ir::Access::kWrite) continue;
    std::vector<int64_t> shape;
    for (const ir::Expr& extent : buffer.shape) shape.push_back(Value(extent, symbols));
    TensorData data = TensorData::Zeros(buffer.dtype, shape);
    for (double& value : data.values) {
      value = ir::IsFloat(buffer.dtype) ? interp::ToTf32(normal(generator))
                                        : static_cast<double>(static_cast<int32_t>(generator()));
    }
    data.Round();
    run.buffers[buffer.name] = std::move(data);
  }
  return run;
}

v1::TensorMapRecipe RecipeOf(const ir::BulkMap& map, ir::DType dtype,
                             const std::map<std::string, int64_t>& symbols) {
  v1::TensorMapRecipe recipe;
  recipe.set_dtype(dtype == ir::DType::kBF16  ? v1::DTYPE_BFLOAT16
                   : dtype == ir::DType::kF16 ? v1::DTYPE_FLOAT16
                   : dtype == ir::DType::kI32 ? v1::DTYPE_INT32
                                              : v1::DTYPE_FLOAT32);
  for (size_t i = map.dims.size(); i-- > 0;) {
    recipe.add_dims()->set_value(Value(map.dims[i], symbols));
    recipe.add_box(map.box[i]);
  }
  for (size_t i = map.strides.size(); i-- > 0;)
    recipe.add_strides()->set_value(Value(map.strides[i], symbols) * ir::SizeOf(dtype));
  recipe.set_swizzle_bytes(map.swizzle);
  return recipe;
}

// What the written buffers of `kernel` hold after a launch on the buffers of `run`; `shapes` are
// theirs.
absl::StatusOr<std::map<std::string, TensorData>> Launch(
    const CudaDriver& driver, const ir::KernelFn& kernel, const interp::FunctionRun& run,
    const std::map<std::string, TensorData>& shapes) {
  const ir::CudaFn cuda = codegen::EmitCuda(kernel);
  HACKC_ASSIGN_OR_RETURN(toolchain::Cubin cubin,
                         toolchain::CompileCubin(cuda.text, cuda.entry, "sm_90a"));
  CUmodule module;
  HACKC_RETURN_IF_ERROR(
      driver.Check(driver.ModuleLoadData(&module, cubin.bytes.data()), "cuModuleLoadData"));
  CUfunction function;
  HACKC_RETURN_IF_ERROR(driver.Check(
      driver.ModuleGetFunction(&function, module, cuda.entry.c_str()), "cuModuleGetFunction"));
  const int64_t shared = ir::LayoutShared(kernel.fn.body).total_bytes;
  HACKC_RETURN_IF_ERROR(driver.Check(
      driver.FunctionSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                  static_cast<int>(shared)),
      "shared memory"));

  std::map<std::string, DeviceMemory> memory;
  std::map<std::string, CUdeviceptr> addresses;
  for (const ir::BufferDecl& buffer : kernel.fn.buffers) {
    const auto given = run.buffers.find(buffer.name);
    std::string bytes;
    if (given != run.buffers.end()) {
      bytes = ToBytes(given->second);
    } else {  // poison: NaN in every float type
      bytes.assign(shapes.at(buffer.name).size() * ir::SizeOf(buffer.dtype), '\xff');
    }
    HACKC_ASSIGN_OR_RETURN(memory[buffer.name],
                           DeviceMemory::Allocate(driver, bytes.size(), buffer.name));
    addresses[buffer.name] = memory[buffer.name].address();
    HACKC_RETURN_IF_ERROR(driver.Check(
        driver.MemcpyHostToDevice(addresses[buffer.name], bytes.data(), bytes.size()), "copy in"));
  }
  std::vector<CUtensorMap> maps(kernel.maps.size());
  for (size_t i = 0; i < maps.size(); ++i) {
    const ir::BulkMap& map = kernel.maps[i];
    ir::DType dtype = ir::DType::kF32;
    for (const ir::BufferDecl& buffer : kernel.fn.buffers) {
      if (buffer.name == map.buffer) dtype = buffer.dtype;
    }
    HACKC_RETURN_IF_ERROR(client::EncodeTensorMap(driver, RecipeOf(map, dtype, run.symbols),
                                                  addresses.at(map.buffer), {}, &maps[i]));
  }
  std::vector<int> symbols;
  for (const ir::SymbolDecl& symbol : kernel.fn.symbols)
    symbols.push_back(static_cast<int>(run.symbols.at(symbol.name)));
  std::vector<void*> arguments;
  for (const ir::BufferDecl& buffer : kernel.fn.buffers)
    arguments.push_back(&addresses[buffer.name]);
  for (int& symbol : symbols) arguments.push_back(&symbol);
  for (CUtensorMap& map : maps) arguments.push_back(&map);
  unsigned grid[3];
  for (int i = 0; i < 3; ++i) grid[i] = static_cast<unsigned>(Value(kernel.grid[i], run.symbols));
  HACKC_RETURN_IF_ERROR(driver.Check(
      driver.LaunchKernel(function, grid[0], grid[1], grid[2], kernel.threads, 1, 1,
                          static_cast<unsigned>(shared), nullptr, arguments.data(), nullptr),
      "cuLaunchKernel"));
  HACKC_RETURN_IF_ERROR(driver.Check(driver.StreamSynchronize(nullptr), "run"));
  std::map<std::string, TensorData> results;
  for (const ir::BufferDecl& buffer : kernel.fn.buffers) {
    if (buffer.access == ir::Access::kRead) continue;
    const TensorData& shape = shapes.at(buffer.name);
    std::string bytes(shape.size() * ir::SizeOf(shape.dtype), '\0');
    HACKC_RETURN_IF_ERROR(driver.Check(
        driver.MemcpyDeviceToHost(bytes.data(), addresses[buffer.name], bytes.size()), "copy out"));
    results[buffer.name] = FromBytes(shape, bytes);
  }
  driver.ModuleUnload(module);
  return results;
}

struct Comparison {
  double largest = 0;  // difference, relative to the largest magnitude
  double bound = 0;
};

// Sums of the interpreter and of the GPU's matrix units differ by a rounding for each term, at most
// the longest extent of an input; kernels that sum nothing must agree to the bit.
absl::StatusOr<Comparison> Compare(const CudaDriver& driver, const std::string& path,
                                   uint64_t seed) {
  std::ifstream stream(path);
  if (!stream) return absl::NotFoundError("cannot be read");
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  HACKC_ASSIGN_OR_RETURN(opt::CaseFile file, opt::ReadCase(text));
  HACKC_ASSIGN_OR_RETURN(ir::KernelFn kernel, ir::ParseKernel(file.input));
  const interp::FunctionRun inputs = Inputs(kernel.fn, file.symbols, seed);
  interp::FunctionRun truth = inputs;
  HACKC_RETURN_IF_ERROR(interp::RunKernel(kernel, truth));
  HACKC_ASSIGN_OR_RETURN(auto results, Launch(driver, kernel, inputs, truth.buffers));
  Comparison comparison;
  bool sums = false;
  ir::WalkStmts(kernel.fn.body, [&](const ir::Stmt& s) {
    sums |= ir::As<ir::Wgmma>(s) || ir::As<ir::Mma>(s) || ir::As<ir::AtomicAdd>(s);
  });
  for (const auto& [name, data] : inputs.buffers) {
    for (int64_t extent : data.shape)
      if (sums) comparison.bound = std::max(comparison.bound, std::ldexp(extent, -23));
  }
  for (const auto& [name, got] : results) {
    const std::vector<double>& want = truth.buffers.at(name).values;
    double scale = 1e-30;
    for (double value : want) scale = std::max(scale, std::abs(value));
    for (size_t i = 0; i < want.size(); ++i) {
      const double difference = std::abs(got.values[i] - want[i]) / scale;
      comparison.largest = difference <= comparison.largest ? comparison.largest : difference;
      if (std::isnan(difference))
        return absl::InternalError(absl::StrCat("@", name, ": NaN at ", i));
    }
  }
  return comparison;
}

// The kernel module's, such as "580.95.05".
std::string DriverVersion() {
  std::string version;
  std::ifstream("/sys/module/nvidia/version") >> version;
  return version;
}

int Run(const std::vector<std::string>& files, uint64_t seed, const std::string& json_path) {
  auto driver = client::LoadCudaDriver();
  if (!driver.ok()) {
    std::cout << "skipped: " << driver.status().message() << std::endl;
    return kSkipped;
  }
  CUdevice device;
  CUcontext context;
  int major = 0;
  char gpu[256] = "";
  if ((*driver)->DeviceGet(&device, 0) != CUDA_SUCCESS ||
      (*driver)->DeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) !=
          CUDA_SUCCESS ||
      major != 9 || (*driver)->PrimaryContextRetain(&context, device) != CUDA_SUCCESS) {
    std::cout << "skipped: no GPU of compute capability 9" << std::endl;
    return kSkipped;
  }
  (*driver)->DeviceGetName(gpu, sizeof(gpu), device);
  client::ScopedContext scope(**driver, context);
  std::signal(SIGALRM, OnAlarm);
  nlohmann::json report{{"gpu", gpu},
                        {"driver", DriverVersion()},
                        {"date", absl::FormatTime(absl::Now(), absl::UTCTimeZone())},
                        {"seed", seed},
                        {"kernels", nlohmann::json::array()}};
  int failures = 0;
  for (const std::string& path : files) {
    running = path;
    alarm(kSecondsForAKernel);
    const absl::StatusOr<Comparison> result = Compare(**driver, path, seed);
    alarm(0);
    const bool good = result.ok() && result->largest <= result->bound;
    failures += !good;
    nlohmann::json row{{"file", path}, {"ok", good}};
    std::cout << (good ? "ok      " : "FAILED  ") << path;
    if (result.ok()) {
      std::cout << "  largest difference " << result->largest << ", bound " << result->bound;
      row["largest_difference"] = result->largest;
      row["bound"] = result->bound;
    } else {
      std::cout << "  " << result.status();
      row["error"] = std::string(result.status().message());
    }
    std::cout << std::endl;
    report["kernels"].push_back(std::move(row));
  }
  std::cout << files.size() - failures << " of " << files.size() << " kernels agree" << std::endl;
  if (!json_path.empty()) std::ofstream(json_path) << report.dump(2) << "\n";
  return failures ? 1 : 0;
}

}  // namespace
}  // namespace hackc

int main(int argc, char** argv) {
  std::vector<std::string> files;
  std::string json;
  uint64_t seed = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--json" && i + 1 < argc) {
      json = argv[++i];
    } else if (argument == "--seed" && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else {
      files.push_back(argument);
    }
  }
  if (files.empty()) {
    std::cerr << "hackc-gpu-kernels [--json OUT.json] [--seed N] FILE.hir...\n";
    return 2;
  }
  return hackc::Run(files, seed, json);
}
