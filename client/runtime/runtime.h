// SPDX-License-Identifier: MIT
// Loads a compiled Program onto a GPU and runs its entry points through the CUDA driver: modules,
// weights, the one-time preparation, the workspace plan, launches on the caller's stream.
//
//   HACKC_ASSIGN_OR_RETURN(const CudaDriver* driver, LoadCudaDriver());
//   HACKC_ASSIGN_OR_RETURN(ProgramFiles files, ReadProgramFolder("out"));
//   HACKC_ASSIGN_OR_RETURN(std::unique_ptr<Runtime> runtime,
//                          Runtime::Load(*driver, std::move(files), 0));
//   for (const WeightInfo& weight : runtime->weights()) runtime->BindWeight(weight.name, ...);
//   HACKC_RETURN_IF_ERROR(runtime->Prepare(stream));
//   HACKC_ASSIGN_OR_RETURN(int64_t bytes,
//                          runtime->WorkspaceBytes("prefill", {{"batch", 1}, {"seq", 13}}));
//   HACKC_RETURN_IF_ERROR(runtime->Run(call, stream));   // returns once all is launched
//
// A program with a key/value cache has the entry points "prefill" and "decode". The cache is the
// caller's: the STATE tensors that Tensors() lists are given to every call, need not be
// initialised, and belong to one batch of sequences. The input past_lengths says how many tokens of
// each sequence they hold, and `past` how many of the longest: the runtime cannot see lengths
// beyond it, which the kernels clamp (program.proto). From one token to the next only these differ:
// `past` costs the runtime one store for each place that is passed it, past_lengths is changed by
// the caller on the stream.
//
// Runs never allocate GPU memory and never synchronise; Prepare does both. Uses the device's
// primary context, as PyTorch does, and leaves the calling thread's current context as it was.
// Thread safety: none; one call at a time on one object. Runs of one object on two streams at once
// need two workspaces.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/runtime/cuda_driver.h"
#include "client/runtime/device_memory.h"
#include "client/runtime/launch_list.h"
#include "client/runtime/program_files.h"
#include "client/runtime/weight_binding.h"

namespace hackc::client {

// A tensor on the device. `bytes` of 0 means unknown; else it must be exactly what the shape needs.
struct DeviceTensor {
  CUdeviceptr address = 0;
  int64_t bytes = 0;
};

struct Call {
  std::string entry;     // "prefill" or "decode"
  SymbolValues symbols;  // one value for each symbol of the program
  // Every input, output and state of the entry point, by the names that Tensors() gives.
  std::map<std::string, DeviceTensor> tensors;
  DeviceTensor workspace;  // 256-byte aligned, at least WorkspaceBytes; its bytes must be known
};

// An input, output or state at given symbol values.
struct TensorInfo {
  std::string name;
  v1::Buffer::Kind kind = v1::Buffer::INPUT;
  v1::DType dtype = v1::DTYPE_UNSPECIFIED;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
};

class Runtime;

// A run as a CUDA graph: replaying it costs one driver call and reads and writes the addresses of
// the capture. Must not outlive its runtime.
class RuntimeGraph {
 public:
  ~RuntimeGraph();
  absl::Status Launch(CUstream stream);
  // Other symbol values for the launches from here on, those under way keep theirs. One driver call
  // for each kernel that takes a symbol. FAILED_PRECONDITION where more than such numbers would
  // change: `past` may change from token to token, shapes may not.
  absl::Status SetSymbols(const SymbolValues& symbols);
  // All launches of the entry point in order, those that the capture left out too: for tools that
  // look at one kernel and its tensors.
  const LaunchList& launches() const { return launches_; }

 private:
  friend class Runtime;
  RuntimeGraph(Runtime& runtime, const v1::EntryPoint& entry, LaunchList launches)
      : runtime_(runtime), entry_(entry), launches_(std::move(launches)) {}
  Runtime& runtime_;
  const v1::EntryPoint& entry_;
  LaunchList launches_;
  CUgraph graph_ = nullptr;  // names the nodes of the executable
  std::vector<CUgraphNode> nodes_;
  CUgraphExec executable_ = nullptr;
};

class Runtime {
 public:
  // Checks the program's form and that its arch runs on the device, loads every cubin and compares
  // its parameters with the contract. FAILED_PRECONDITION when the device does not fit. The memory
  // of copied weights, constants and prepared weights comes from the allocator when it has
  // functions.
  static absl::StatusOr<std::unique_ptr<Runtime>> Load(const CudaDriver& driver, ProgramFiles files,
                                                       int device, DeviceAllocator allocator = {});
  ~Runtime();
  // Frees all but what the caller allocated; afterwards only driver(), context() and allocator().
  void Unload();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const v1::Program& program() const { return files_.program; }
  const CudaDriver& driver() const { return driver_; }
  CUcontext context() const { return context_; }
  const DeviceAllocator& allocator() const { return allocator_; }
  const std::vector<WeightInfo>& weights() const { return tensors_->weights(); }

  absl::Status BindWeight(const std::string& name, const WeightTensor& tensor);
  std::vector<std::string> MissingWeights() const { return tensors_->MissingWeights(); }

  // Once, after all weights are bound. Waits for the stream.
  absl::Status Prepare(CUstream stream);

  absl::StatusOr<int64_t> WorkspaceBytes(const std::string& entry,
                                         const SymbolValues& symbols) const;
  absl::StatusOr<std::vector<TensorInfo>> Tensors(const std::string& entry,
                                                  const SymbolValues& symbols) const;

  absl::Status Run(const Call& call, CUstream stream);
  // Where `kernels` names any, the graph holds only their launches, as a measurement of one kernel
  // wants; NOT_FOUND for a name that the entry point does not launch.
  absl::StatusOr<std::unique_ptr<RuntimeGraph>> Capture(const Call& call,
                                                        const std::set<std::string>& kernels = {});

 private:
  friend class RuntimeGraph;
  Runtime(const CudaDriver& driver, ProgramFiles files, DeviceAllocator allocator)
      : driver_(driver), files_(std::move(files)), allocator_(std::move(allocator)) {}
  // A tensor that the caller binds at each run of an entry point.
  struct CallerTensor {
    std::string name;
    uint32_t buffer;
    int slot;
  };
  std::vector<CallerTensor> CallerTensors(const v1::EntryPoint& entry) const;
  // Of several with one name, that whose ranges hold the values.
  absl::StatusOr<const v1::EntryPoint*> FindEntry(const std::string& name,
                                                  const SymbolValues& symbols) const;
  absl::Status CheckSymbols(const v1::EntryPoint& entry, const SymbolValues& symbols) const;
  absl::StatusOr<CallerAddresses> Addresses(const v1::EntryPoint& entry, const Call& call) const;
  absl::StatusOr<LaunchList*> Launches(const v1::EntryPoint& entry, const SymbolValues& symbols);

  const CudaDriver& driver_;
  ProgramFiles files_;
  DeviceAllocator allocator_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  std::vector<CUmodule> modules_;
  std::vector<CUfunction> functions_;  // by kernel
  std::unique_ptr<ResidentTensors> tensors_;
  std::map<const v1::EntryPoint*, std::vector<CallerTensor>> caller_tensors_;
  int caller_slots_ = 0;
  bool prepared_ = false;
  struct Ready {
    const v1::EntryPoint* entry;
    SymbolValues symbols;
    LaunchList launches;
  };
  std::list<Ready> ready_;  // newest first
};

}  // namespace hackc::client
