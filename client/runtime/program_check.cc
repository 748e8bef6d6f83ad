// SPDX-License-Identifier: MIT
#include "client/runtime/program_check.h"

#include <cuda.h>

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/support/status_macros.h"

namespace hackc::client {
namespace {

// A hostile count must not unroll without end: 1,000 layers of 100 kernels are far below.
constexpr uint64_t kMaxLaunches = 1 << 20;
constexpr int kMaxRepeatDepth = 8;
constexpr uint32_t kMaxRepetitions = 1 << 16;
// Names are made for every repetition of every buffer.
constexpr uint64_t kMaxTensors = 1 << 20;
constexpr size_t kMaxNameBytes = 1024;
// CUDA's limit since compute capability 7.0 with driver 12.1.
constexpr uint32_t kMaxParameterBytes = 32764;

template <typename... Parts>
absl::Status Malformed(const std::string& path, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("program.", path, ": ", parts...));
}

absl::Status CheckBuffers(const v1::Program& program) {
  std::set<std::string> names;
  uint64_t tensors = 0;
  for (int i = 0; i < program.buffers_size(); ++i) {
    const v1::Buffer& buffer = program.buffers(i);
    std::string path = absl::StrCat("buffers[", i, "]");
    if (buffer.id() != static_cast<uint32_t>(i)) return Malformed(path, "id is ", buffer.id());
    if (ElementBytes(buffer.dtype()) == 0) return Malformed(path, "unknown dtype");
    bool repeats = buffer.kind() == v1::Buffer::WEIGHT || buffer.kind() == v1::Buffer::PREPARED ||
                   buffer.kind() == v1::Buffer::STATE;
    if (buffer.repeat_count() > 0 && !repeats) {
      return Malformed(path, "repeat_count on a ", v1::Buffer::Kind_Name(buffer.kind()));
    }
    if (buffer.repeat_count() > kMaxRepetitions) {
      return Malformed(path, "repeat_count is ", buffer.repeat_count());
    }
    tensors += Repetitions(buffer);
    if (tensors > kMaxTensors) return Malformed(path, "more than ", kMaxTensors, " tensors");
    if (buffer.name().size() > kMaxNameBytes || buffer.weight_name().size() > kMaxNameBytes) {
      return Malformed(path, "a name of more than ", kMaxNameBytes, " bytes");
    }
    if (buffer.kind() == v1::Buffer::WEIGHT && buffer.weight_name().empty()) {
      return Malformed(path, "a WEIGHT without weight_name");
    }
    if (buffer.kind() == v1::Buffer::WEIGHT && buffer.repeat_count() > 1 &&
        buffer.layer_step() == 0) {
      return Malformed(path, "layer_step is 0");
    }
    for (uint32_t i = 0; IsCallerBound(buffer) && i < Repetitions(buffer); ++i) {
      std::string name = TensorName(buffer, i);
      if (name.empty() || !names.insert(name).second) {
        return Malformed(path, "name '", name, "' is empty or not unique");
      }
    }
  }
  return absl::OkStatus();
}

uint32_t PointerBytes(v1::Param::Kind kind) {
  switch (kind) {
    case v1::Param::BUFFER: return 8;
    case v1::Param::SYMBOL_I32: return 4;
    case v1::Param::TENSOR_MAP: return sizeof(CUtensorMap);
    default: return 0;
  }
}

absl::Status CheckParams(const v1::Kernel& kernel, const std::set<std::string>& symbols,
                         const std::string& kernel_path) {
  uint32_t end = 0;
  uint32_t arguments = 0;
  for (const v1::Param& param : kernel.params()) arguments += TakesArgument(param);
  for (int i = 0; i < kernel.params_size(); ++i) {
    const v1::Param& param = kernel.params(i);
    std::string path = absl::StrCat(kernel_path, ".params[", i, "]");
    uint32_t size = PointerBytes(param.kind());
    uint32_t natural = param.kind() == v1::Param::TENSOR_MAP ? 64 : size;
    if (size == 0 || param.size() != size) {
      return Malformed(path, "size ", param.size(), ", expected ", size);
    }
    if (param.offset() < end || param.offset() % natural != 0 ||
        param.offset() > kMaxParameterBytes - size) {
      return Malformed(path, "offset ", param.offset(), " overlaps, is misaligned or too large");
    }
    end = param.offset() + size;
    if (param.alignment() & (param.alignment() - 1)) {
      return Malformed(path, "alignment ", param.alignment(), " is no power of two");
    }
    if (param.kind() == v1::Param::SYMBOL_I32 && !symbols.count(param.symbol())) {
      return Malformed(path, "unknown symbol '", param.symbol(), "'");
    }
    if (param.kind() == v1::Param::TENSOR_MAP) {
      const v1::TensorMapRecipe& recipe = param.tensor_map();
      int rank = recipe.dims_size();
      if (rank < 1 || rank > 5 || recipe.strides_size() != rank - 1 || recipe.box_size() != rank ||
          recipe.buffer_argument() >= arguments) {
        return Malformed(path, "incomplete tensor_map");
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckKernels(const v1::Program& program, const std::set<std::string>& symbols) {
  for (int i = 0; i < program.kernels_size(); ++i) {
    const v1::Kernel& kernel = program.kernels(i);
    std::string path = absl::StrCat("kernels[", i, "]");
    if (kernel.entry().empty()) return Malformed(path, "no entry name");
    if (kernel.grid_size() != 3) return Malformed(path, "grid needs 3 formulas");
    if (kernel.block_size() != 3) return Malformed(path, "block needs 3 extents");
    if (kernel.cluster_size() != 3 && kernel.cluster_size() != 0) {
      return Malformed(path, "cluster needs 3 extents");
    }
    uint64_t threads = 1;
    for (uint32_t extent : kernel.block()) threads *= std::min(extent, 2048u);
    if (threads == 0 || threads > 1024) return Malformed(path, "block has no or over 1024 threads");
    for (uint32_t extent : kernel.cluster()) {
      if (extent == 0 || extent > 16) return Malformed(path, "cluster extent ", extent);
    }
    for (const v1::Symbol& symbol : kernel.valid()) {
      if (!symbols.count(symbol.name())) {
        return Malformed(path, "valid: unknown symbol '", symbol.name(), "'");
      }
    }
    HACKC_RETURN_IF_ERROR(CheckParams(kernel, symbols, path));
  }
  return absl::OkStatus();
}

class StepChecker {
 public:
  StepChecker(const v1::Program& program, bool prepare) : program_(program), prepare_(prepare) {}

  absl::Status Check(const google::protobuf::RepeatedPtrField<v1::Step>& steps,
                     const std::string& path, int depth, uint64_t times, uint32_t count) {
    if (depth > kMaxRepeatDepth) return Malformed(path, "repetitions nested too deep");
    for (int i = 0; i < steps.size(); ++i) {
      const v1::Step& step = steps[i];
      std::string here = absl::StrCat(path, "[", i, "]");
      // Both factors stay below 2^32, so the product cannot overflow. A repetition counts too: an
      // empty one launches nothing, and is walked all the same.
      const uint64_t inner = times * (step.has_repeat() ? step.repeat().count() : 1);
      launches_ += inner;
      if (launches_ > kMaxLaunches) return Malformed(here, "too many launches");
      if (step.has_repeat()) {
        HACKC_RETURN_IF_ERROR(Check(step.repeat().steps(), absl::StrCat(here, ".repeat.steps"),
                                    depth + 1, inner, step.repeat().count()));
      } else if (step.has_launch()) {
        HACKC_RETURN_IF_ERROR(CheckLaunch(step.launch(), here, count));
      } else {
        return Malformed(here, "neither launch nor repeat");
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckLaunch(const v1::Launch& launch, const std::string& path, uint32_t count) {
    if (launch.kernel() >= static_cast<uint32_t>(program_.kernels_size())) {
      return Malformed(path, "kernel ", launch.kernel(), " does not exist");
    }
    int argument = 0;
    for (const v1::Param& param : program_.kernels(launch.kernel()).params()) {
      if (!TakesArgument(param)) continue;
      if (argument == launch.args_size()) return Malformed(path, "too few arguments");
      std::string here = absl::StrCat(path, ".args[", argument, "]");
      HACKC_RETURN_IF_ERROR(CheckArgument(launch.args(argument++), param, here, count));
    }
    if (argument != launch.args_size()) return Malformed(path, "too many arguments");
    return absl::OkStatus();
  }

  absl::Status CheckArgument(const v1::BufferRef& ref, const v1::Param& param,
                             const std::string& path, uint32_t count) {
    if (ref.buffer() >= static_cast<uint32_t>(program_.buffers_size())) {
      return Malformed(path, "buffer ", ref.buffer(), " does not exist");
    }
    const v1::Buffer& buffer = program_.buffers(ref.buffer());
    std::string kind = v1::Buffer::Kind_Name(buffer.kind());
    // Outside of a repetition there is one iteration, for instance in a model of one layer.
    uint32_t tensors = std::max(count, 1u);
    if (buffer.repeat_count() > 0 &&
        (tensors > buffer.repeat_count() || (count == 0 && buffer.repeat_count() != 1))) {
      return Malformed(path, "'", buffer.name(), "' has ", buffer.repeat_count(),
                       " tensors, the repetition has ", count);
    }
    bool resident = buffer.kind() == v1::Buffer::WEIGHT || buffer.kind() == v1::Buffer::CONSTANT ||
                    buffer.kind() == v1::Buffer::PREPARED;
    if (prepare_ && !resident)
      return Malformed(path, "prepare uses the ", kind, " '", buffer.name(), "'");
    bool writable = prepare_ ? buffer.kind() == v1::Buffer::PREPARED
                             : !resident && buffer.kind() != v1::Buffer::INPUT;
    if (param.written() && !writable) {
      return Malformed(path, "writes the ", kind, " '", buffer.name(), "'");
    }
    return absl::OkStatus();
  }

  const v1::Program& program_;
  bool prepare_;
  uint64_t launches_ = 0;
};

// Entry points of one name must differ in the values that they take.
bool Overlap(const v1::EntryPoint& a, const v1::EntryPoint& b) {
  for (const v1::Symbol& mine : a.symbols()) {
    for (const v1::Symbol& other : b.symbols()) {
      if (mine.name() == other.name() && (mine.max() < other.min() || other.max() < mine.min())) {
        return false;
      }
    }
  }
  return a.name() == b.name();
}

absl::Status CheckEntryPoints(const v1::Program& program, const std::set<std::string>& symbols) {
  for (int i = 0; i < program.entry_points_size(); ++i) {
    const v1::EntryPoint& entry = program.entry_points(i);
    std::string path = absl::StrCat("entry_points[", i, "]");
    for (int j = 0; j < i; ++j) {
      if (Overlap(entry, program.entry_points(j))) {
        return Malformed(path, "name is not unique in its ranges of the symbols");
      }
    }
    auto check = [&](const auto& ids, const char* field, v1::Buffer::Kind kind) -> absl::Status {
      for (uint32_t id : ids) {
        if (id >= static_cast<uint32_t>(program.buffers_size()) ||
            (program.buffers(id).kind() != kind &&
             program.buffers(id).kind() != v1::Buffer::STATE)) {
          return Malformed(absl::StrCat(path, ".", field), "buffer ", id, " is no ",
                           v1::Buffer::Kind_Name(kind));
        }
      }
      return absl::OkStatus();
    };
    std::set<std::string> ranges;
    for (const v1::Symbol& symbol : entry.symbols()) ranges.insert(symbol.name());
    if (entry.symbols_size() > 0 &&
        (ranges != symbols || entry.symbols_size() != static_cast<int>(symbols.size()))) {
      return Malformed(path, "symbols: expected each of the program's once");
    }
    HACKC_RETURN_IF_ERROR(check(entry.inputs(), "inputs", v1::Buffer::INPUT));
    HACKC_RETURN_IF_ERROR(check(entry.outputs(), "outputs", v1::Buffer::OUTPUT));
    HACKC_RETURN_IF_ERROR(
        StepChecker(program, false).Check(entry.steps(), absl::StrCat(path, ".steps"), 0, 1, 0));
  }
  return absl::OkStatus();
}

void FlattenInto(const google::protobuf::RepeatedPtrField<v1::Step>& steps, uint32_t iteration,
                 std::vector<FlatLaunch>* launches) {
  for (const v1::Step& step : steps) {
    if (step.has_launch()) launches->push_back({&step.launch(), iteration});
    if (!step.has_repeat()) continue;
    for (uint32_t i = 0; i < step.repeat().count(); ++i) {
      FlattenInto(step.repeat().steps(), i, launches);
    }
  }
}

}  // namespace

absl::Status CheckProgram(const v1::Program& program) {
  std::set<std::string> symbols;
  for (const v1::Symbol& symbol : program.symbols()) symbols.insert(symbol.name());
  HACKC_RETURN_IF_ERROR(CheckBuffers(program));
  HACKC_RETURN_IF_ERROR(CheckKernels(program, symbols));
  HACKC_RETURN_IF_ERROR(StepChecker(program, true).Check(program.prepare(), "prepare", 0, 1, 0));
  return CheckEntryPoints(program, symbols);
}

std::vector<FlatLaunch> Flatten(const google::protobuf::RepeatedPtrField<v1::Step>& steps) {
  std::vector<FlatLaunch> launches;
  FlattenInto(steps, 0, &launches);
  return launches;
}

uint32_t Repetitions(const v1::Buffer& buffer) { return std::max(1u, buffer.repeat_count()); }

std::string TensorName(const v1::Buffer& buffer, uint32_t iteration) {
  if (buffer.weight_name().empty()) return buffer.name();
  uint64_t layer = buffer.first_layer() + uint64_t{iteration} * buffer.layer_step();
  return absl::StrReplaceAll(buffer.weight_name(), {{"{layer}", absl::StrCat(layer)}});
}

bool IsCallerBound(const v1::Buffer& buffer) {
  return buffer.kind() == v1::Buffer::INPUT || buffer.kind() == v1::Buffer::OUTPUT ||
         buffer.kind() == v1::Buffer::STATE;
}

std::vector<int> CallerSlots(const v1::Program& program) {
  std::vector<int> slots;
  int next = 0;
  for (const v1::Buffer& buffer : program.buffers()) {
    slots.push_back(IsCallerBound(buffer) ? next : -1);
    if (IsCallerBound(buffer)) next += static_cast<int>(Repetitions(buffer));
  }
  slots.push_back(next);
  return slots;
}

int64_t ElementBytes(v1::DType dtype) {
  switch (dtype) {
    case v1::DTYPE_FLOAT32:
    case v1::DTYPE_INT32: return 4;
    case v1::DTYPE_BFLOAT16:
    case v1::DTYPE_FLOAT16: return 2;
    case v1::DTYPE_INT64:
    case v1::DTYPE_FLOAT64: return 8;
    case v1::DTYPE_BOOL: return 1;
    default: return 0;
  }
}

absl::StatusOr<std::vector<int64_t>> EvaluateShape(const v1::Buffer& buffer,
                                                   const SymbolValues& symbols) {
  std::vector<int64_t> shape;
  for (const v1::DimExpr& formula : buffer.shape()) {
    absl::StatusOr<int64_t> extent = Evaluate(formula, symbols);
    if (extent.ok() && *extent < 0) extent = absl::OutOfRangeError("negative extent");
    if (!extent.ok()) {
      return absl::Status(extent.status().code(), absl::StrCat("shape of buffer '", buffer.name(),
                                                               "': ", extent.status().message()));
    }
    shape.push_back(*extent);
  }
  return shape;
}

absl::StatusOr<int64_t> EvaluateBytes(const v1::Buffer& buffer, const SymbolValues& symbols) {
  HACKC_ASSIGN_OR_RETURN(std::vector<int64_t> shape, EvaluateShape(buffer, symbols));
  int64_t bytes = ElementBytes(buffer.dtype());
  for (int64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) {
      return absl::OutOfRangeError(absl::StrCat("buffer '", buffer.name(), "' exceeds 64 bits"));
    }
  }
  return bytes;
}

}  // namespace hackc::client
