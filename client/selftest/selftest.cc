// SPDX-License-Identifier: MIT
// hackc-selftest DIR: loads a program folder, fills its weights with seeded random values, runs an
// entry point on poisoned memory and checks that every output element was written with a finite
// number, that nothing was written round the outputs and the workspace, and that a second run gives
// the same bits. Needs a GPU and no framework; made to run under compute-sanitizer.
//
//   hackc-client submit model.json --layers 2 --local --out out
//   compute-sanitizer --tool memcheck --error-exitcode 9 hackc-selftest out --seq 1,7,33
//   hackc-selftest out --entry decode --batch 3 --past 40 --seq 1    # sequences of 40, 0 and 13
//                                                                    tokens
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/runtime/float_convert.h"
#include "client/runtime/guarded_memory.h"
#include "client/runtime/program_check.h"
#include "client/runtime/runtime.h"
#include "compiler/support/status_macros.h"

namespace hackc::client {
namespace {

struct Options {
  std::string directory;
  std::vector<int64_t> sequences = {1, 7, 33};
  std::string entry = "prefill";
  int device = 0;
  int64_t batch = 0;  // 0: the program's least
  int64_t past = 0;   // of the longest sequence; others are shorter
};

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  uint64_t Next() {  // xorshift64*: a hundred million weights take under a second
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1du;
  }
  // Uniform with standard deviation 1.
  float Unit() { return (static_cast<float>(Next() >> 40) / (1 << 24) - 0.5f) * 3.4641016f; }

 private:
  uint64_t state_;
};

double ToDouble(const char* element, v1::DType dtype) {
  uint16_t half;
  float single;
  double value;
  switch (dtype) {
    case v1::DTYPE_FLOAT32: std::memcpy(&single, element, 4); return single;
    case v1::DTYPE_FLOAT64: std::memcpy(&value, element, 8); return value;
    case v1::DTYPE_BFLOAT16: std::memcpy(&half, element, 2); return BFloat16ToFloat(half);
    case v1::DTYPE_FLOAT16: std::memcpy(&half, element, 2); return Float16ToFloat(half);
    default: return 0;
  }
}

// Matrices get 1 / sqrt(columns), which keeps activations near 1; vectors lie round 1 (norms) or 0.
std::string RandomWeight(const WeightInfo& weight, uint64_t seed) {
  Random random(seed);
  int64_t width = ElementBytes(weight.dtype);
  std::string bytes(weight.bytes, '\0');
  bool matrix = weight.shape.size() > 1;
  float scale = matrix ? 1.0f / std::sqrt(static_cast<float>(weight.shape.back())) : 0.1f;
  float center = matrix || absl::EndsWith(weight.name, "bias") ? 0.0f : 1.0f;
  for (int64_t i = 0; i < weight.bytes / width; ++i) {
    float value = center + scale * random.Unit();
    if (weight.dtype == v1::DTYPE_FLOAT32) {
      std::memcpy(&bytes[i * 4], &value, 4);
    } else {
      uint16_t half =
          weight.dtype == v1::DTYPE_FLOAT16 ? FloatToFloat16(value) : FloatToBFloat16(value);
      std::memcpy(&bytes[i * 2], &half, 2);
    }
  }
  return bytes;
}

struct Bound {
  TensorInfo info;
  GuardedMemory memory;
};

class SelfTest {
 public:
  SelfTest(const CudaDriver& driver, Runtime& runtime, const Options& options)
      : driver_(driver), runtime_(runtime), options_(options) {}

  absl::Status BindRandomWeights() {
    uint64_t seed = 1;
    for (const WeightInfo& weight : runtime_.weights()) {
      std::string bytes = RandomWeight(weight, seed++);
      HACKC_RETURN_IF_ERROR(runtime_.BindWeight(
          weight.name, {bytes.data(), weight.dtype, weight.shape, /*on_device=*/false}));
    }
    return runtime_.Prepare(nullptr);
  }

  absl::Status RunAt(int64_t sequence) {
    Call call;
    call.entry = options_.entry;
    for (const v1::Symbol& symbol : runtime_.program().symbols()) {
      int64_t& value = call.symbols[symbol.name()];
      value = symbol.min();
      if (symbol.name() == "seq") value = sequence;
      if (symbol.name() == "batch" && options_.batch > 0) value = options_.batch;
      if (symbol.name() == "past") value = options_.past;
      if (symbol.name() == "pages") value = symbol.max();
    }
    HACKC_ASSIGN_OR_RETURN(std::vector<TensorInfo> infos,
                           runtime_.Tensors(call.entry, call.symbols));
    HACKC_ASSIGN_OR_RETURN(int64_t workspace_bytes,
                           runtime_.WorkspaceBytes(call.entry, call.symbols));
    HACKC_ASSIGN_OR_RETURN(GuardedMemory workspace,
                           GuardedMemory::Allocate(driver_, workspace_bytes, "workspace"));
    call.workspace = {workspace.address(), workspace_bytes};
    std::vector<Bound> tensors;
    int64_t vocabulary = 2;
    for (const TensorInfo& info : infos) {
      HACKC_ASSIGN_OR_RETURN(GuardedMemory memory,
                             GuardedMemory::Allocate(driver_, info.bytes, info.name));
      call.tensors[info.name] = {memory.address(), info.bytes};
      if (info.kind == v1::Buffer::OUTPUT && !info.shape.empty()) vocabulary = info.shape.back();
      // A cache without tokens stays poisoned.
      if (info.kind == v1::Buffer::STATE && options_.past > 0)
        HACKC_RETURN_IF_ERROR(memory.FillNumbers());
      tensors.push_back({info, std::move(memory)});
    }
    for (const Bound& tensor : tensors) HACKC_RETURN_IF_ERROR(FillInput(tensor, vocabulary));
    std::vector<std::string> first;
    for (int run = 0; run < 2; ++run) {
      HACKC_RETURN_IF_ERROR(workspace.Poison());
      for (Bound& tensor : tensors) {
        if (tensor.info.kind == v1::Buffer::OUTPUT) HACKC_RETURN_IF_ERROR(tensor.memory.Poison());
      }
      HACKC_RETURN_IF_ERROR(runtime_.Run(call, nullptr));
      HACKC_RETURN_IF_ERROR(driver_.Check(driver_.StreamSynchronize(nullptr), "run"));
      HACKC_RETURN_IF_ERROR(workspace.CheckRedZones());
      for (const Bound& tensor : tensors) HACKC_RETURN_IF_ERROR(CheckTensor(tensor, run, &first));
    }
    std::cout << options_.entry << " seq " << sequence << " past " << options_.past << ": ok\n";
    return absl::OkStatus();
  }

 private:
  absl::Status FillInput(const Bound& tensor, int64_t vocabulary) {
    const TensorInfo& info = tensor.info;
    if (info.kind != v1::Buffer::INPUT || info.bytes == 0) return absl::OkStatus();
    int64_t width = ElementBytes(info.dtype);
    bool positions = absl::StrContains(info.name, "position");
    bool lengths = info.name == "past_lengths", pages = info.name == "page_table";
    int64_t row = info.shape.empty() ? 1 : info.shape.back();
    Random random(12345);
    std::string bytes(info.bytes, '\0');
    for (int64_t i = 0; i < info.bytes / width; ++i) {
      int64_t value = positions ? i % row : static_cast<int64_t>(random.Next() % vocabulary);
      if (lengths) value = i % 2 == 0 ? options_.past / (i + 1) : i / 2;
      if (pages) value = info.bytes / width - 1 - i;
      std::memcpy(&bytes[i * width], &value, width);  // little-endian: the low bytes
    }
    return driver_.Check(
        driver_.MemcpyHostToDevice(tensor.memory.address(), bytes.data(), bytes.size()),
        absl::StrCat("upload of ", info.name));
  }

  absl::Status CheckTensor(const Bound& tensor, int run, std::vector<std::string>* first) {
    HACKC_RETURN_IF_ERROR(tensor.memory.CheckRedZones());
    if (tensor.info.kind != v1::Buffer::OUTPUT) return absl::OkStatus();
    HACKC_ASSIGN_OR_RETURN(std::string bytes, tensor.memory.Read());
    int64_t width = ElementBytes(tensor.info.dtype);
    double sum = 0;
    for (int64_t i = 0; i < static_cast<int64_t>(bytes.size()) / width; ++i) {
      double value = ToDouble(&bytes[i * width], tensor.info.dtype);
      if (!std::isfinite(value)) {
        return absl::InternalError(absl::StrCat(tensor.info.name, "[", i, "] is ", value));
      }
      sum += std::abs(value);
    }
    if (sum == 0) return absl::InternalError(absl::StrCat(tensor.info.name, " is all zero"));
    if (run == 0) {
      first->push_back(std::move(bytes));
    } else if (bytes != (*first)[compared_++ % first->size()]) {
      return absl::InternalError(absl::StrCat(tensor.info.name, ": two runs give different bits"));
    }
    return absl::OkStatus();
  }

  const CudaDriver& driver_;
  Runtime& runtime_;
  const Options& options_;
  size_t compared_ = 0;
};

absl::StatusOr<Options> ParseOptions(int argc, char** argv) {
  const absl::Status usage = absl::InvalidArgumentError(
      "usage: hackc-selftest DIR [--seq N,N,...] [--entry NAME] [--batch N] [--past N] "
      "[--device N]");
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument[0] != '-') {
      options.directory = argument;
      continue;
    }
    if (i + 1 == argc) return usage;
    std::string value = argv[++i];
    if (argument == "--seq") {
      options.sequences.clear();
      for (const std::string& text : std::vector<std::string>(absl::StrSplit(value, ','))) {
        options.sequences.push_back(0);
        if (!absl::SimpleAtoi(text, &options.sequences.back())) return usage;
      }
    } else if (argument == "--entry") {
      options.entry = value;
    } else if (argument == "--batch" || argument == "--past") {
      if (!absl::SimpleAtoi(value, argument == "--past" ? &options.past : &options.batch))
        return usage;
    } else if (argument != "--device" || !absl::SimpleAtoi(value, &options.device)) {
      return usage;
    }
  }
  if (options.directory.empty()) return usage;
  return options;
}

absl::Status Main(int argc, char** argv) {
  HACKC_ASSIGN_OR_RETURN(Options options, ParseOptions(argc, argv));
  HACKC_ASSIGN_OR_RETURN(ProgramFiles files, ReadProgramFolder(options.directory));
  HACKC_ASSIGN_OR_RETURN(const CudaDriver* driver, LoadCudaDriver());
  HACKC_ASSIGN_OR_RETURN(std::unique_ptr<Runtime> runtime,
                         Runtime::Load(*driver, std::move(files), options.device));
  CUdevice device = 0;
  CUcontext context = nullptr;
  HACKC_RETURN_IF_ERROR(driver->Check(driver->DeviceGet(&device, options.device), "cuDeviceGet"));
  HACKC_RETURN_IF_ERROR(
      driver->Check(driver->PrimaryContextRetain(&context, device), "cuDevicePrimaryCtxRetain"));
  ScopedContext scope(*driver, context);
  HACKC_RETURN_IF_ERROR(scope.status());
  SelfTest test(*driver, *runtime, options);
  HACKC_RETURN_IF_ERROR(test.BindRandomWeights());
  for (int64_t sequence : options.sequences) HACKC_RETURN_IF_ERROR(test.RunAt(sequence));
  return absl::OkStatus();
}

}  // namespace
}  // namespace hackc::client

int main(int argc, char** argv) {
  absl::Status status;
  try {
    status = hackc::client::Main(argc, argv);
  } catch (const std::exception& error) {
    status = absl::InternalError(error.what());
  }
  if (status.ok()) return 0;
  std::cerr << "hackc-selftest: " << status.ToString() << std::endl;
  return status.code() == absl::StatusCode::kInvalidArgument ? 2 : 1;
}
