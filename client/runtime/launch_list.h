// SPDX-License-Identifier: MIT
// The launches of one step list at one set of symbol values, made ready once: repetitions unrolled,
// grids evaluated, parameter blocks laid out. Launching it again costs one driver call for each
// kernel and, when the caller's pointers changed, one store for each place where they occur.
//
//   HACKC_ASSIGN_OR_RETURN(
//       LaunchList list, LaunchList::Build(driver, program, functions, tensors, entry.steps(),
//                                          {{"seq", 13}}, workspace_bytes));
//   HACKC_RETURN_IF_ERROR(list.Launch(addresses, stream));
//
// Thread safety: none; one launch at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/runtime/cuda_driver.h"
#include "client/runtime/dim_expr.h"
#include "client/runtime/program_check.h"
#include "client/runtime/weight_binding.h"

namespace hackc::client {

// All addresses of one run: those of the INPUT, OUTPUT and STATE tensors in the order of
// CallerSlots (0 for those that the entry point does not use), and the workspace's.
struct CallerAddresses {
  std::vector<CUdeviceptr> tensors;
  CUdeviceptr workspace = 0;
  bool operator==(const CallerAddresses&) const = default;
};

// What one launch reads or writes, as its kernel is told.
struct LaunchArgument {
  std::string name;  // of the buffer
  v1::Buffer::Kind kind = v1::Buffer::INPUT;
  v1::DType dtype = v1::DTYPE_UNSPECIFIED;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
  bool written = false;
  CUdeviceptr address = 0;
};

class LaunchList {
 public:
  // Refuses symbols outside the range that a kernel is proven for, formulas without a value,
  // buffers that leave the workspace, and resident tensors that are unbound or misaligned.
  static absl::StatusOr<LaunchList> Build(const CudaDriver& driver, const v1::Program& program,
                                          const std::vector<CUfunction>& functions,
                                          const ResidentTensors& tensors,
                                          const google::protobuf::RepeatedPtrField<v1::Step>& steps,
                                          const SymbolValues& symbols, int64_t workspace_bytes);
  LaunchList(LaunchList&&) = default;
  LaunchList& operator=(LaunchList&&) = default;

  // Takes other symbol values where that changes nothing but numbers passed to kernels, as `past`
  // does from one token to the next: no formula is evaluated and no address moves. False, and
  // nothing is done, where more would change.
  absl::StatusOr<bool> TakeSymbols(const SymbolValues& symbols, int64_t workspace_bytes);

  // INVALID_ARGUMENT for a misaligned address, before anything is launched.
  absl::Status Launch(const CallerAddresses& addresses, CUstream stream);

  // The same launches as nodes of a graph, each behind the one before; where `kernels` names any,
  // only theirs. nodes[i] is null for a launch that is left out or has no blocks.
  absl::Status AddTo(CUgraph graph, const CallerAddresses& addresses,
                     const std::set<std::string>& kernels, std::vector<CUgraphNode>* nodes);
  // Gives the numbers of the latest TakeSymbols to an instantiated graph of AddTo, for its launches
  // from here on.
  absl::Status UpdateNumbers(CUgraphExec executable, const std::vector<CUgraphNode>& nodes) const;

  size_t size() const { return records_.size(); }
  const std::string& KernelName(size_t launch) const {
    return program_->kernels(records_[launch].kernel).name();
  }
  // The tensors of a launch in the order of its parameters, at the addresses of the latest Launch
  // or AddTo.
  absl::StatusOr<std::vector<LaunchArgument>> Arguments(size_t launch) const;

 private:
  // Tensor maps need 64-byte alignment; blocks start at 128.
  struct alignas(128) Chunk {
    std::byte bytes[128];
  };
  struct Record {
    CUfunction function = nullptr;
    const v1::Launch* launch = nullptr;
    std::array<uint32_t, 3> grid{};
    std::array<uint32_t, 3> block{};
    std::array<uint32_t, 3> cluster{1, 1, 1};
    uint32_t shared_bytes = 0;
    size_t first_parameter = 0;  // in parameters_
    uint32_t kernel = 0;
    uint32_t iteration = 0;
  };
  // A place in the parameter blocks that holds an address of the caller, or a tensor map over one.
  struct Patch {
    size_t record;
    const v1::Param* param;
    size_t place;  // byte in the blocks
    int slot;      // of CallerAddresses::tensors; -1: the workspace
    uint32_t buffer;
    int64_t offset;
  };
  // A place in the parameter blocks that holds a symbol's value.
  struct Number {
    size_t record;
    size_t place;
    const std::string* symbol;
  };
  LaunchList() = default;
  absl::Status AddLaunch(const FlatLaunch& flat, CUfunction function,
                         const ResidentTensors& tensors, int64_t workspace_bytes);
  absl::Status AddArgument(const v1::BufferRef& ref, const v1::Param& param, size_t place,
                           uint32_t iteration, const ResidentTensors& tensors,
                           int64_t workspace_bytes);
  absl::Status SetNumber(const Number& number);
  absl::Status Apply(const CallerAddresses& addresses);
  absl::Status SetPointer(const v1::Param& param, size_t place, CUdeviceptr address);
  std::byte* Place(size_t place) { return reinterpret_cast<std::byte*>(blocks_.data()) + place; }
  std::string Where(size_t record) const;
  static bool IsEmpty(const Record& record);
  CUDA_KERNEL_NODE_PARAMS NodeParameters(const Record& record) const;

  const CudaDriver* driver_ = nullptr;
  const v1::Program* program_ = nullptr;
  SymbolValues symbols_;
  std::vector<int> slots_;  // by buffer
  std::vector<Record> records_;
  std::vector<Chunk> blocks_;
  std::vector<void*> parameters_;  // kernelParams of all records, one after the other
  std::vector<Patch> patches_;
  std::vector<Number> numbers_;
  std::set<uint32_t> kernels_;             // those launched
  std::set<std::string> shaping_symbols_;  // in grids, shapes, offsets and tensor maps
  int64_t workspace_bytes_ = 0;
  CallerAddresses applied_;
};

}  // namespace hackc::client
