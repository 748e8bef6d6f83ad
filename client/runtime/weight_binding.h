// SPDX-License-Identifier: MIT
// The tensors that stay on the GPU between runs: the checkpoint's weights, bound one by one under
// their Hugging Face names, the program's constants, and room for what `prepare` makes of both.
//
//   HACKC_ASSIGN_OR_RETURN(ResidentTensors tensors, ResidentTensors::Create(driver, &program));
//   HACKC_RETURN_IF_ERROR(
//       tensors.Bind("model.norm.weight", {pointer, v1::DTYPE_BFLOAT16, {3584}, true}));
//   if (!tensors.MissingWeights().empty()) ...
//
// Must be used with the context current. Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/runtime/cuda_driver.h"
#include "client/runtime/device_memory.h"
#include "client/runtime/uploader.h"
#include "hackc/v1/program.pb.h"

namespace hackc::client {

// A dense row-major tensor of the caller. On the device it is used where it lies and must outlive
// the runtime; on the host it is copied before Bind returns, with `convert` from another floating
// dtype.
struct WeightTensor {
  const void* data = nullptr;
  v1::DType dtype = v1::DTYPE_UNSPECIFIED;
  std::vector<int64_t> shape;
  bool on_device = false;
  bool convert = false;
};

// What the program expects under one name.
struct WeightInfo {
  std::string name;
  v1::DType dtype = v1::DTYPE_UNSPECIFIED;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
};

class ResidentTensors {
 public:
  // Uploads the constants. `program` must be checked (CheckProgram); it and the allocator must
  // outlive this.
  static absl::StatusOr<ResidentTensors> Create(const CudaDriver& driver,
                                                const v1::Program* program,
                                                const DeviceAllocator* allocator = nullptr);

  // NOT_FOUND for a name that the program does not have, INVALID_ARGUMENT for another shape or
  // dtype.
  absl::Status Bind(const std::string& name, const WeightTensor& tensor);

  const std::vector<WeightInfo>& weights() const { return weights_; }
  std::vector<std::string> MissingWeights() const;

  // Room for PREPARED tensors, filled with 0xff (NaN in every floating dtype), so that an element
  // which no prepare kernel writes shows up in the results.
  absl::Status AllocatePrepared(CUstream stream);

  // Frees the buffers of uploads, and uploaded weights that only `prepare` read; on a prepared
  // model they would be a second copy.
  void ReleaseUploadsUnusedBy(
      const google::protobuf::RepeatedPtrField<v1::EntryPoint>& entry_points);

  // Address of a WEIGHT, CONSTANT or PREPARED tensor; 0 while it has none.
  CUdeviceptr Address(uint32_t buffer, uint32_t iteration) const;

 private:
  struct Tensor {
    uint32_t buffer;
    uint32_t iteration;
  };
  struct Named {
    WeightInfo info;
    std::vector<Tensor> targets;  // several when buffers share a weight, as tied embeddings do
    DeviceMemory upload;
    bool bound = false;
  };

  const CudaDriver* driver_ = nullptr;
  const DeviceAllocator* allocator_ = nullptr;
  const v1::Program* program_ = nullptr;
  std::unique_ptr<Uploader> uploader_;
  std::vector<WeightInfo> weights_;
  std::map<std::string, Named> named_;
  std::vector<std::vector<CUdeviceptr>> addresses_;  // by buffer and iteration
  std::vector<DeviceMemory> slabs_;
};

}  // namespace hackc::client
