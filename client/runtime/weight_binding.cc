// SPDX-License-Identifier: MIT
#include "client/runtime/weight_binding.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/runtime/program_check.h"

namespace hackc::client {
namespace {

// cuMemAlloc aligns to 256 bytes; tensors inside a slab keep that.
constexpr int64_t kAlignment = 256;

int64_t Padded(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::string Describe(v1::DType dtype, const std::vector<int64_t>& shape) {
  return absl::StrCat(v1::DType_Name(dtype), " [", absl::StrJoin(shape, ", "), "]");
}

}  // namespace

absl::StatusOr<ResidentTensors> ResidentTensors::Create(const CudaDriver& driver,
                                                        const v1::Program* program,
                                                        const DeviceAllocator* allocator) {
  ResidentTensors tensors;
  tensors.driver_ = &driver;
  tensors.allocator_ = allocator;
  tensors.program_ = program;
  tensors.uploader_ = std::make_unique<Uploader>(driver);
  tensors.addresses_.resize(program->buffers_size());
  std::vector<std::string> order;
  for (const v1::Buffer& buffer : program->buffers()) {
    bool weight = buffer.kind() == v1::Buffer::WEIGHT;
    if (!weight && buffer.kind() != v1::Buffer::CONSTANT && buffer.kind() != v1::Buffer::PREPARED) {
      continue;
    }
    tensors.addresses_[buffer.id()].assign(Repetitions(buffer), 0);
    // Without symbols: what stays between runs cannot depend on their shapes.
    HACKC_ASSIGN_OR_RETURN(std::vector<int64_t> shape, EvaluateShape(buffer, {}));
    HACKC_ASSIGN_OR_RETURN(int64_t bytes, EvaluateBytes(buffer, {}));
    if (buffer.kind() == v1::Buffer::CONSTANT) {
      if (static_cast<size_t>(bytes) != buffer.data().size()) {
        return absl::InvalidArgumentError(absl::StrCat("program.buffers[", buffer.id(),
                                                       "].data has ", buffer.data().size(),
                                                       " bytes, its shape has ", bytes));
      }
      HACKC_ASSIGN_OR_RETURN(DeviceMemory memory,
                             DeviceMemory::Allocate(driver, bytes, buffer.name(), allocator));
      if (bytes > 0) {
        HACKC_RETURN_IF_ERROR(
            driver.Check(driver.MemcpyHostToDevice(memory.address(), buffer.data().data(), bytes),
                         absl::StrCat("upload of ", buffer.name())));
      }
      tensors.addresses_[buffer.id()][0] = memory.address();
      tensors.slabs_.push_back(std::move(memory));
    }
    if (!weight) continue;
    for (uint32_t i = 0; i < Repetitions(buffer); ++i) {
      std::string name = TensorName(buffer, i);
      Named& named = tensors.named_[name];
      if (named.targets.empty()) {
        named.info = {name, buffer.dtype(), shape, bytes};
        order.push_back(name);
      } else if (named.info.shape != shape || named.info.dtype != buffer.dtype()) {
        return absl::InvalidArgumentError(
            absl::StrCat("program.buffers[", buffer.id(), "] wants ", name, " as ",
                         Describe(buffer.dtype(), shape), ", another buffer as ",
                         Describe(named.info.dtype, named.info.shape)));
      }
      named.targets.push_back({buffer.id(), i});
    }
  }
  for (const std::string& name : order) tensors.weights_.push_back(tensors.named_[name].info);
  return tensors;
}

absl::Status ResidentTensors::Bind(const std::string& name, const WeightTensor& tensor) {
  auto found = named_.find(name);
  if (found == named_.end()) {
    return absl::NotFoundError(
        absl::StrCat("weight ", name, ": the program has none of this name"));
  }
  Named& named = found->second;
  const bool convert = tensor.convert && !tensor.on_device;
  if ((tensor.dtype != named.info.dtype && !convert) || tensor.shape != named.info.shape) {
    return absl::InvalidArgumentError(absl::StrCat("weight ", name, ": expected ",
                                                   Describe(named.info.dtype, named.info.shape),
                                                   ", got ", Describe(tensor.dtype, tensor.shape)));
  }
  if (tensor.data == nullptr && named.info.bytes > 0) {
    return absl::InvalidArgumentError(absl::StrCat("weight ", name, ": null pointer"));
  }
  DeviceMemory upload;
  CUdeviceptr address = reinterpret_cast<CUdeviceptr>(tensor.data);
  if (!tensor.on_device) {
    HACKC_ASSIGN_OR_RETURN(upload,
                           DeviceMemory::Allocate(*driver_, named.info.bytes, name, allocator_));
    address = upload.address();
    const int64_t count = named.info.bytes / ElementBytes(named.info.dtype);
    absl::Status copied =
        uploader_->Copy(address, named.info.dtype, tensor.data, tensor.dtype, count);
    if (!copied.ok()) {
      return absl::Status(copied.code(), absl::StrCat("weight ", name, ": ", copied.message()));
    }
  }
  named.upload = std::move(upload);
  named.bound = true;
  for (const Tensor& target : named.targets) addresses_[target.buffer][target.iteration] = address;
  return absl::OkStatus();
}

std::vector<std::string> ResidentTensors::MissingWeights() const {
  std::vector<std::string> missing;
  for (const WeightInfo& weight : weights_) {
    if (!named_.at(weight.name).bound) missing.push_back(weight.name);
  }
  return missing;
}

absl::Status ResidentTensors::AllocatePrepared(CUstream stream) {
  int64_t total = 0;
  for (const v1::Buffer& buffer : program_->buffers()) {
    if (buffer.kind() != v1::Buffer::PREPARED) continue;
    HACKC_ASSIGN_OR_RETURN(int64_t bytes, EvaluateBytes(buffer, {}));
    int64_t all = 0;
    if (bytes > INT64_MAX / 2 ||
        __builtin_mul_overflow(Padded(bytes), int64_t{Repetitions(buffer)}, &all) ||
        __builtin_add_overflow(total, all, &total)) {
      return absl::OutOfRangeError("the prepared weights exceed 64 bits");
    }
  }
  if (total == 0) return absl::OkStatus();
  HACKC_ASSIGN_OR_RETURN(DeviceMemory slab,
                         DeviceMemory::Allocate(*driver_, total, "prepared weights", allocator_));
  HACKC_RETURN_IF_ERROR(driver_->Check(driver_->MemsetD8Async(slab.address(), 0xff, total, stream),
                                       "cuMemsetD8Async of the prepared weights"));
  CUdeviceptr next = slab.address();
  for (const v1::Buffer& buffer : program_->buffers()) {
    if (buffer.kind() != v1::Buffer::PREPARED) continue;
    HACKC_ASSIGN_OR_RETURN(int64_t bytes, EvaluateBytes(buffer, {}));
    for (CUdeviceptr& address : addresses_[buffer.id()]) {
      address = next;
      next += Padded(bytes);
    }
  }
  slabs_.push_back(std::move(slab));
  return absl::OkStatus();
}

void ResidentTensors::ReleaseUploadsUnusedBy(
    const google::protobuf::RepeatedPtrField<v1::EntryPoint>& entry_points) {
  uploader_ = std::make_unique<Uploader>(*driver_);
  std::set<uint32_t> used;
  for (const v1::EntryPoint& entry : entry_points) {
    for (const FlatLaunch& flat : Flatten(entry.steps())) {
      for (const v1::BufferRef& ref : flat.launch->args()) used.insert(ref.buffer());
    }
  }
  for (auto& [name, named] : named_) {
    bool needed = std::any_of(named.targets.begin(), named.targets.end(),
                              [&](const Tensor& target) { return used.count(target.buffer) > 0; });
    if (needed) continue;
    DeviceMemory released = std::move(named.upload);
    for (const Tensor& target : named.targets) addresses_[target.buffer][target.iteration] = 0;
  }
}

CUdeviceptr ResidentTensors::Address(uint32_t buffer, uint32_t iteration) const {
  const std::vector<CUdeviceptr>& tensors = addresses_[buffer];
  // A buffer without repetition is the same tensor in every iteration.
  if (tensors.empty()) return 0;
  return tensors.size() == 1 ? tensors[0] : tensors[iteration];
}

}  // namespace hackc::client
