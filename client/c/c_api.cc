// SPDX-License-Identifier: MIT
#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/hackc.h"
#include "client/runtime/checkpoint.h"
#include "client/runtime/runtime.h"
#include "compiler/support/status_macros.h"

struct hackc_program {
  mutable std::set<std::string> names;
  std::shared_ptr<hackc::client::Runtime> runtime;
  std::mutex mutex;  // of what follows; never held during a call of the allocator
  std::map<void*, hackc::client::DeviceMemory> memory;  // handed out by hackc_memory_allocate
  std::atomic<bool> closed = false;  // the last piece of memory takes the program with it
};

struct hackc_graph {
  mutable std::set<std::string> names;
  std::unique_ptr<hackc::client::RuntimeGraph> graph;
};

namespace {

using hackc::client::Call;
using hackc::client::SymbolValues;
using hackc::client::TensorInfo;

thread_local std::string last_error;

int Fail(int code, std::string message) {
  last_error = std::move(message);
  return code;
}

// Runs `body`, which returns a status; nothing it throws gets past.
template <typename Body>
int Guarded(Body body) noexcept {
  try {
    absl::Status status = body();
    if (status.ok()) return HACKC_OK;
    return Fail(static_cast<int>(status.code()),
                absl::StrCat(absl::StatusCodeToString(status.code()), ": ", status.message()));
  } catch (const std::exception& error) {
    try {
      return Fail(HACKC_INTERNAL, absl::StrCat("INTERNAL: ", error.what()));
    } catch (...) {
      return HACKC_INTERNAL;
    }
  } catch (...) {
    return HACKC_INTERNAL;
  }
}

absl::Status Need(const void* pointer, const char* what) {
  if (pointer != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, ": null pointer"));
}

absl::Status Need(const hackc_program* program, const char* what) {
  HACKC_RETURN_IF_ERROR(Need(static_cast<const void*>(program), what));
  if (!program->closed) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(what, ": is closed"));
}

absl::StatusOr<int64_t> Size(uint64_t bytes, absl::string_view what) {
  if (bytes <= INT64_MAX) return static_cast<int64_t>(bytes);
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": expected at most ", INT64_MAX, " bytes, got ", bytes));
}

absl::StatusOr<SymbolValues> Symbols(const hackc_symbol* symbols, size_t count) {
  SymbolValues values;
  if (count > 0) HACKC_RETURN_IF_ERROR(Need(symbols, "symbols"));
  for (size_t i = 0; i < count; ++i) {
    HACKC_RETURN_IF_ERROR(Need(symbols[i].name, "symbols[].name"));
    if (!values.emplace(symbols[i].name, symbols[i].value).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("symbol ", symbols[i].name, " is given twice"));
    }
  }
  return values;
}

absl::StatusOr<Call> MakeCall(const char* entry, const hackc_symbol* symbols, size_t symbol_count,
                              const hackc_tensor* tensors, size_t tensor_count, void* workspace,
                              uint64_t workspace_bytes) {
  Call call;
  HACKC_RETURN_IF_ERROR(Need(entry, "entry"));
  call.entry = entry;
  HACKC_ASSIGN_OR_RETURN(call.symbols, Symbols(symbols, symbol_count));
  if (tensor_count > 0) HACKC_RETURN_IF_ERROR(Need(tensors, "tensors"));
  for (size_t i = 0; i < tensor_count; ++i) {
    HACKC_RETURN_IF_ERROR(Need(tensors[i].name, "tensors[].name"));
    hackc::client::DeviceTensor tensor{reinterpret_cast<CUdeviceptr>(tensors[i].data), 0};
    HACKC_ASSIGN_OR_RETURN(tensor.bytes, Size(tensors[i].bytes, tensors[i].name));
    if (!call.tensors.emplace(tensors[i].name, tensor).second) {
      return absl::InvalidArgumentError(absl::StrCat(tensors[i].name, " is given twice"));
    }
  }
  call.workspace.address = reinterpret_cast<CUdeviceptr>(workspace);
  HACKC_ASSIGN_OR_RETURN(call.workspace.bytes, Size(workspace_bytes, "workspace"));
  return call;
}

absl::Status Fill(const char* name, int kind, hackc::v1::DType dtype,
                  const std::vector<int64_t>& shape, int64_t bytes, hackc_tensor_info* info) {
  if (shape.size() > HACKC_MAX_RANK) {
    return absl::OutOfRangeError(
        absl::StrCat(name, ": rank ", shape.size(), " exceeds ", HACKC_MAX_RANK));
  }
  *info = {};
  info->name = name;
  info->kind = kind;
  info->dtype = dtype;
  info->rank = static_cast<int32_t>(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) info->shape[i] = shape[i];
  info->bytes = bytes;
  return absl::OkStatus();
}

absl::Status NoSuchIndex(const char* what, size_t index) {
  return absl::OutOfRangeError(absl::StrCat("there is no ", what, " of index ", index));
}

absl::StatusOr<absl::string_view> Text(const hackc_bytes& bytes, const char* what) {
  if (bytes.bytes > 0) HACKC_RETURN_IF_ERROR(Need(bytes.data, what));
  return absl::string_view(static_cast<const char*>(bytes.data), bytes.bytes);
}

absl::Status Load(hackc::client::ProgramFiles files, int device, const hackc_allocator* allocator,
                  hackc_program** program) {
  hackc::client::DeviceAllocator own;
  if (allocator != nullptr) {
    const hackc_allocator given = *allocator;
    HACKC_RETURN_IF_ERROR(
        Need(reinterpret_cast<const void*>(given.allocate), "allocator.allocate"));
    HACKC_RETURN_IF_ERROR(Need(reinterpret_cast<const void*>(given.release), "allocator.release"));
    own.allocate = [given](int64_t bytes) {
      return reinterpret_cast<CUdeviceptr>(given.allocate(given.user, bytes));
    };
    own.release = [given](CUdeviceptr data) {
      given.release(given.user, reinterpret_cast<void*>(data));
    };
  }
  HACKC_ASSIGN_OR_RETURN(const hackc::client::CudaDriver* driver, hackc::client::LoadCudaDriver());
  HACKC_ASSIGN_OR_RETURN(
      std::unique_ptr<hackc::client::Runtime> runtime,
      hackc::client::Runtime::Load(*driver, std::move(files), device, std::move(own)));
  *program = new hackc_program;
  (*program)->runtime = std::move(runtime);
  return absl::OkStatus();
}

}  // namespace

extern "C" {

int hackc_program_open(const char* directory, int device, const hackc_allocator* allocator,
                       hackc_program** program) {
  return Guarded([&]() -> absl::Status {
    HACKC_RETURN_IF_ERROR(Need(directory, "directory"));
    HACKC_RETURN_IF_ERROR(Need(program, "program"));
    *program = nullptr;
    HACKC_ASSIGN_OR_RETURN(hackc::client::ProgramFiles files,
                           hackc::client::ReadProgramFolder(directory));
    return Load(std::move(files), device, allocator, program);
  });
}

int hackc_program_load(hackc_bytes program_bytes, const hackc_bytes* cubins, size_t cubin_count,
                       int device, const hackc_allocator* allocator, hackc_program** program) {
  return Guarded([&]() -> absl::Status {
    HACKC_RETURN_IF_ERROR(Need(program, "program"));
    *program = nullptr;
    if (cubin_count > 0) HACKC_RETURN_IF_ERROR(Need(cubins, "cubins"));
    HACKC_ASSIGN_OR_RETURN(absl::string_view text, Text(program_bytes, "program_bytes"));
    std::vector<absl::string_view> codes(cubin_count);
    for (size_t i = 0; i < cubin_count; ++i) {
      HACKC_ASSIGN_OR_RETURN(codes[i], Text(cubins[i], "cubins[]"));
    }
    HACKC_ASSIGN_OR_RETURN(hackc::client::ProgramFiles files,
                           hackc::client::ParseProgram(text, codes));
    return Load(std::move(files), device, allocator, program);
  });
}

void hackc_program_close(hackc_program* program) {
  Guarded([&]() -> absl::Status {
    if (program == nullptr) return absl::OkStatus();
    HACKC_RETURN_IF_ERROR(Need(program, "program"));
    {
      std::lock_guard<std::mutex> lock(program->mutex);
      program->closed = !program->memory.empty();
      if (program->closed) {
        program->runtime->Unload();
        return absl::OkStatus();
      }
    }
    delete program;
    return absl::OkStatus();
  });
}

int hackc_memory_allocate(hackc_program* program, uint64_t bytes, void** data) {
  return Guarded([&]() -> absl::Status {
    HACKC_RETURN_IF_ERROR(Need(program, "program"));
    HACKC_RETURN_IF_ERROR(Need(data, "data"));
    hackc::client::Runtime& runtime = *program->runtime;
    hackc::client::ScopedContext scope(runtime.driver(), runtime.context());
    HACKC_RETURN_IF_ERROR(scope.status());
    HACKC_ASSIGN_OR_RETURN(const int64_t size, Size(bytes, "bytes"));
    HACKC_ASSIGN_OR_RETURN(hackc::client::DeviceMemory memory,
                           hackc::client::DeviceMemory::Allocate(
                               runtime.driver(), size, "the caller", &runtime.allocator()));
    *data = reinterpret_cast<void*>(memory.address());
    std::lock_guard<std::mutex> lock(program->mutex);
    program->memory[*data] = std::move(memory);
    return absl::OkStatus();
  });
}

int hackc_memory_release(hackc_program* program, void* data) {
  return Guarded([&]() -> absl::Status {
    HACKC_RETURN_IF_ERROR(Need(static_cast<const void*>(program), "program"));
    // Outlives the memory, also where another thread releases the last piece meanwhile.
    const std::shared_ptr<hackc::client::Runtime> runtime = program->runtime;
    hackc::client::ScopedContext scope(runtime->driver(), runtime->context());
    decltype(program->memory)::node_type released;
    bool last = false;
    {
      std::lock_guard<std::mutex> lock(program->mutex);
      released = program->memory.extract(data);
      last = program->closed && program->memory.empty() && !released.empty();
    }
    if (last) delete program;
    if (released.empty()) {
      return absl::NotFoundError("data: not memory of hackc_memory_allocate");
    }
    return scope.status();
  });
}

int hackc_memory_fill(hackc_program* program, void* data, int32_t value, uint64_t count,
                      void* stream) {
  return Guarded([&]() -> absl::Status {
    HACKC_RETURN_IF_ERROR(Need(program, "program"));
    if (count > 0) HACKC_RETURN_IF_ERROR(Need(data, "data"));
    const hackc::client::CudaDriver& driver = program->runtime->driver();
    hackc::client::ScopedContext scope(driver, program->runtime->context());
    HACKC_RETURN_IF_ERROR(scope.status());
    return driver.Check(
        driver.MemsetD32Async(reinterpret_cast<CUdeviceptr>(data), static_cast<unsigned>(value),
                              count, static_cast<CUstream>(stream)),
        "cuMemsetD32Async");
  });
}

int hackc_synchronize(hackc_program* program) {
  return Guarded([&]() -> absl::Status {
    HACKC_RETURN_IF_ERROR(Need(program, "program"));
    const hackc::client::CudaDriver& driver = program->runtime->driver();
    hackc::client::ScopedContext scope(driver, program->runtime->context());
    HACKC_RETURN_IF_ERROR(scope.status());
    return driver.Check(driver.ContextSynchronize(), "cuCtxSynchronize");
  });
}

int hackc_weight_info(const hackc_program* program, size_t index, hackc_tensor_info* info) {
  return Guarded([&]() -> absl::Status {
    HACKC_RETURN_IF_ERROR(Need(program, "program"));
    HACKC_RETURN_IF_ERROR(Need(info, "info"));
    const auto& weights = program->runtime->weights();
    if (index >= weights.size()) return NoSuchIndex("weight", index);
    const hackc::client::WeightInfo& weight = weights[index];
    return Fill(weight.name.c_str(), HACKC_KIND_WEIGHT, weight.dtype, weight.shape, weight.bytes,
                info);
  });
}

int hackc_symbol_info(const hackc_program* program, size_t index, hackc_symbol_range* range) {
  return Guarded([&]() -> absl::Status {
    HACKC_RETURN_IF_ERROR(Need(program, "program"));
    HACKC_RETURN_IF_ERROR(Need(range, "range"));
    const auto& symbols = program->runtime->program().symbols();
    if (index >= static_cast<size_t>(symbols.size())) return NoSuchIndex("symbol", index);
    const hackc::v1::Symbol& symbol = symbols[static_cast<int>(index)];
    *range = {symbol.name().c_str(), symbol.min(), symbol.max()};
    return absl::OkStatus();
  });
}

int hackc_tensor_info_at(const hackc_program* program, const char* entry,
                         const hackc_symbol* symbols, size_t symbol_count, size_t index,
                         hackc_tensor_info* info) {
  return Guarded([&]() -> absl::Status {
    HACKC_RETURN_IF_ERROR(Need(program, "program"));
    HACKC_RETURN_IF_ERROR(Need(entry, "entry"));
    HACKC_RETURN_IF_ERROR(Need(info, "info"));
    HACKC_ASSIGN_OR_RETURN(SymbolValues values, Symbols(symbols, symbol_count));
    HACKC_ASSIGN_OR_RETURN(std::vector<TensorInfo> tensors,
                           program->runtime->Tensors(entry, values));
    if (index >= tensors.size()) return NoSuchIndex("tensor", index);
    const TensorInfo& tensor = tensors[index];
    // The name handed out has to live as long as the program.
    const std::string& name = *program->names.insert(tensor.name).first;
    return Fill(name.c_str(), tensor.kind, tensor.dtype, tensor.shape, tensor.bytes, info);
  });
}

int hackc_bind_weight(hackc_program* program, const char* name, const void* data, int dtype,
                      int rank, const int64_t* shape, int is_device) {
  return Guarded([&]() -> absl::Status {
    HACKC_RETURN_IF_ERROR(Need(program, "program"));
    HACKC_RETURN_IF_ERROR(Need(name, "name"));
    if (rank < 0 || rank > HACKC_MAX_RANK) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank: ", rank, " is outside 0..", HACKC_MAX_RANK));
    }
    if (rank > 0) HACKC_RETURN_IF_ERROR(Need(shape, "shape"));
    hackc::client::WeightTensor tensor;
    tensor.data = data;
    tensor.dtype = static_cast<hackc::v1::DType>(dtype);
    tensor.shape.assign(shape, shape + rank);
    tensor.on_device = is_device != 0;
    return program->runtime->BindWeight(name, tensor);
  });
}

int hackc_bind_folder(hackc_program* program, const char* directory, int strict,
                      hackc_progress progress, void* user) {
  return Guarded([&]() -> absl::Status {
    HACKC_RETURN_IF_ERROR(Need(program, "program"));
    HACKC_RETURN_IF_ERROR(Need(directory, "directory"));
    HACKC_ASSIGN_OR_RETURN(hackc::client::Checkpoint checkpoint,
                           hackc::client::Checkpoint::Open(directory));
    hackc::client::Checkpoint::Progress told;
    if (progress != nullptr) {
      told = [&](int64_t done, int64_t total) { return progress(user, done, total) == 0; };
    }
    HACKC_ASSIGN_OR_RETURN(std::vector<std::string> unused,
                           checkpoint.BindTo(*program->runtime, told));
    if (!strict || unused.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        unused.size(), " weights are not of this program: ", absl::StrJoin(unused, ", ")));
  });
}

int hackc_prepare(hackc_program* program, void* stream) {
  return Guarded([&]() -> absl::Status {
    HACKC_RETURN_IF_ERROR(Need(program, "program"));
    return program->runtime->Prepare(static_cast<CUstream>(stream));
  });
}

int hackc_workspace_bytes(const hackc_program* program, const char* entry,
                          const hackc_symbol* symbols, size_t symbol_count, uint64_t* bytes) {
  return Guarded([&]() -> absl::Status {
    HACKC_RETURN_IF_ERROR(Need(program, "program"));
    HACKC_RETURN_IF_ERROR(Need(entry, "entry"));
    HACKC_RETURN_IF_ERROR(Need(bytes, "bytes"));
    HACKC_ASSIGN_OR_RETURN(SymbolValues values, Symbols(symbols, symbol_count));
    HACKC_ASSIGN_OR_RETURN(*bytes, program->runtime->WorkspaceBytes(entry, values));
    return absl::OkStatus();
  });
}

int hackc_run(hackc_program* program, const char* entry, const hackc_symbol* symbols,
              size_t symbol_count, const hackc_tensor* tensors, size_t tensor_count,
              void* workspace, uint64_t workspace_bytes, void* stream) {
  return Guarded([&]() -> absl::Status {
    HACKC_RETURN_IF_ERROR(Need(program, "program"));
    HACKC_ASSIGN_OR_RETURN(Call call, MakeCall(entry, symbols, symbol_count, tensors, tensor_count,
                                               workspace, workspace_bytes));
    return program->runtime->Run(call, static_cast<CUstream>(stream));
  });
}

int hackc_graph_capture(hackc_program* program, const char* entry, const hackc_symbol* symbols,
                        size_t symbol_count, const hackc_tensor* tensors, size_t tensor_count,
                        void* workspace, uint64_t workspace_bytes, hackc_graph** graph) {
  return hackc_graph_capture_kernels(program, entry, symbols, symbol_count, tensors, tensor_count,
                                     workspace, workspace_bytes, nullptr, 0, graph);
}

int hackc_graph_capture_kernels(hackc_program* program, const char* entry,
                                const hackc_symbol* symbols, size_t symbol_count,
                                const hackc_tensor* tensors, size_t tensor_count, void* workspace,
                                uint64_t workspace_bytes, const char* const* kernels,
                                size_t kernel_count, hackc_graph** graph) {
  return Guarded([&]() -> absl::Status {
    HACKC_RETURN_IF_ERROR(Need(program, "program"));
    HACKC_RETURN_IF_ERROR(Need(graph, "graph"));
    *graph = nullptr;
    HACKC_ASSIGN_OR_RETURN(Call call, MakeCall(entry, symbols, symbol_count, tensors, tensor_count,
                                               workspace, workspace_bytes));
    std::set<std::string> only;
    for (size_t i = 0; i < kernel_count; ++i) {
      HACKC_RETURN_IF_ERROR(Need(kernels, "kernels"));
      HACKC_RETURN_IF_ERROR(Need(kernels[i], "kernels[]"));
      only.insert(kernels[i]);
    }
    HACKC_ASSIGN_OR_RETURN(std::unique_ptr<hackc::client::RuntimeGraph> captured,
                           program->runtime->Capture(call, only));
    *graph = new hackc_graph{{}, std::move(captured)};
    return absl::OkStatus();
  });
}

int hackc_graph_argument(const hackc_graph* graph, size_t launch, size_t argument,
                         hackc_argument_info* info) {
  return Guarded([&]() -> absl::Status {
    HACKC_RETURN_IF_ERROR(Need(graph, "graph"));
    HACKC_RETURN_IF_ERROR(Need(info, "info"));
    const hackc::client::LaunchList& launches = graph->graph->launches();
    if (launch >= launches.size()) return NoSuchIndex("launch", launch);
    HACKC_ASSIGN_OR_RETURN(std::vector<hackc::client::LaunchArgument> arguments,
                           launches.Arguments(launch));
    if (argument >= arguments.size()) return NoSuchIndex("argument", argument);
    const hackc::client::LaunchArgument& found = arguments[argument];
    *info = {};
    info->kernel = launches.KernelName(launch).c_str();
    info->address = reinterpret_cast<void*>(found.address);
    info->written = found.written;
    return Fill(graph->names.insert(found.name).first->c_str(), found.kind, found.dtype,
                found.shape, found.bytes, &info->tensor);
  });
}

int hackc_graph_set_symbols(hackc_graph* graph, const hackc_symbol* symbols, size_t symbol_count) {
  return Guarded([&]() -> absl::Status {
    HACKC_RETURN_IF_ERROR(Need(graph, "graph"));
    HACKC_ASSIGN_OR_RETURN(SymbolValues values, Symbols(symbols, symbol_count));
    return graph->graph->SetSymbols(values);
  });
}

int hackc_graph_launch(hackc_graph* graph, void* stream) {
  return Guarded([&]() -> absl::Status {
    HACKC_RETURN_IF_ERROR(Need(graph, "graph"));
    return graph->graph->Launch(static_cast<CUstream>(stream));
  });
}

void hackc_graph_destroy(hackc_graph* graph) {
  Guarded([&] {
    delete graph;
    return absl::OkStatus();
  });
}

const char* hackc_version(void) { return HACKC_VERSION; }

const char* hackc_last_error(void) { return last_error.c_str(); }

}  // extern "C"
