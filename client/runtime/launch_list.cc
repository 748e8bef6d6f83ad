// SPDX-License-Identifier: MIT
#include "client/runtime/launch_list.h"

#include <cstring>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "client/runtime/tensor_map.h"
#include "compiler/support/status_macros.h"

namespace hackc::client {
namespace {

const std::string kWorkspace = "workspace";

absl::Status Annotate(const absl::Status& status, const std::string& where) {
  return status.ok() ? status
                     : absl::Status(status.code(), absl::StrCat(where, ": ", status.message()));
}

absl::Status CheckValid(const v1::Kernel& kernel, const SymbolValues& symbols) {
  for (const v1::Symbol& symbol : kernel.valid()) {
    auto found = symbols.find(symbol.name());
    if (found == symbols.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("kernel ", kernel.name(), ": no value for the symbol ", symbol.name()));
    }
    if (found->second < symbol.min() || found->second > symbol.max()) {
      return absl::InvalidArgumentError(
          absl::StrCat(symbol.name(), " = ", found->second, " is outside ", symbol.min(), "..",
                       symbol.max(), ", for which the kernel ", kernel.name(), " is proven"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::array<uint32_t, 3>> EvaluateGrid(const v1::Kernel& kernel,
                                                     const SymbolValues& symbols) {
  // CUDA's limits of a grid.
  constexpr std::array<int64_t, 3> kLimits = {std::numeric_limits<int32_t>::max(), 65535, 65535};
  std::array<uint32_t, 3> grid{};
  for (int i = 0; i < 3; ++i) {
    HACKC_ASSIGN_OR_RETURN(int64_t extent, Evaluate(kernel.grid(i), symbols));
    if (extent < 0 || extent > kLimits[i]) {
      return absl::OutOfRangeError(absl::StrCat("grid[", i, "] = ", FormulaText(kernel.grid(i)),
                                                " = ", extent, ", expected 0..", kLimits[i]));
    }
    grid[i] = static_cast<uint32_t>(extent);
  }
  return grid;
}

void AddSymbols(const v1::DimExpr& formula, std::set<std::string>* symbols) {
  if (formula.op() == v1::DimExpr::SYMBOL) symbols->insert(formula.symbol());
  for (const v1::DimExpr& arg : formula.args()) AddSymbols(arg, symbols);
}

// Symbols that decide more than the numbers a kernel is passed.
void AddShapingSymbols(const v1::Program& program, const v1::Launch& launch,
                       std::set<std::string>* symbols) {
  const v1::Kernel& kernel = program.kernels(launch.kernel());
  for (const v1::DimExpr& extent : kernel.grid()) AddSymbols(extent, symbols);
  for (const v1::Param& param : kernel.params()) {
    for (const v1::DimExpr& extent : param.tensor_map().dims()) AddSymbols(extent, symbols);
    for (const v1::DimExpr& stride : param.tensor_map().strides()) AddSymbols(stride, symbols);
  }
  for (const v1::BufferRef& ref : launch.args()) {
    AddSymbols(ref.offset(), symbols);
    const v1::Buffer& buffer = program.buffers(ref.buffer());
    AddSymbols(buffer.offset(), symbols);
    for (const v1::DimExpr& extent : buffer.shape()) AddSymbols(extent, symbols);
  }
}

size_t BlockBytes(const v1::Kernel& kernel) {
  if (kernel.params().empty()) return 0;
  const v1::Param& last = kernel.params(kernel.params_size() - 1);
  return last.offset() + last.size();
}

}  // namespace

absl::StatusOr<LaunchList> LaunchList::Build(
    const CudaDriver& driver, const v1::Program& program, const std::vector<CUfunction>& functions,
    const ResidentTensors& tensors, const google::protobuf::RepeatedPtrField<v1::Step>& steps,
    const SymbolValues& symbols, int64_t workspace_bytes) {
  LaunchList list;
  list.driver_ = &driver;
  list.program_ = &program;
  list.symbols_ = symbols;
  list.slots_ = CallerSlots(program);
  std::vector<FlatLaunch> launches = Flatten(steps);
  size_t chunks = 0;
  size_t parameters = 0;
  list.workspace_bytes_ = workspace_bytes;
  std::set<const v1::Launch*> seen;
  for (const FlatLaunch& flat : launches) {
    const v1::Kernel& kernel = program.kernels(flat.launch->kernel());
    chunks += (BlockBytes(kernel) + sizeof(Chunk) - 1) / sizeof(Chunk);
    parameters += kernel.params_size();
    list.kernels_.insert(flat.launch->kernel());
    if (seen.insert(flat.launch).second) {
      AddShapingSymbols(program, *flat.launch, &list.shaping_symbols_);
    }
  }
  for (uint32_t kernel : list.kernels_) {
    HACKC_RETURN_IF_ERROR(CheckValid(program.kernels(kernel), symbols));
  }
  // Reserved once: kernelParams point into the blocks.
  list.blocks_.reserve(chunks);
  list.parameters_.reserve(parameters);
  for (const FlatLaunch& flat : launches) {
    absl::Status added =
        list.AddLaunch(flat, functions[flat.launch->kernel()], tensors, workspace_bytes);
    if (!added.ok()) return Annotate(added, list.Where(list.records_.size() - 1));
  }
  return list;
}

absl::Status LaunchList::AddLaunch(const FlatLaunch& flat, CUfunction function,
                                   const ResidentTensors& tensors, int64_t workspace_bytes) {
  const v1::Kernel& kernel = program_->kernels(flat.launch->kernel());
  Record record;
  record.function = function;
  record.launch = flat.launch;
  record.kernel = flat.launch->kernel();
  record.iteration = flat.iteration;
  record.shared_bytes = kernel.dynamic_shared_bytes();
  for (int i = 0; i < 3; ++i) {
    record.block[i] = kernel.block(i);
    if (kernel.cluster_size() == 3) record.cluster[i] = kernel.cluster(i);
  }
  record.first_parameter = parameters_.size();
  records_.push_back(record);
  HACKC_ASSIGN_OR_RETURN(records_.back().grid, EvaluateGrid(kernel, symbols_));

  size_t start = blocks_.size() * sizeof(Chunk);
  blocks_.resize(blocks_.size() + (BlockBytes(kernel) + sizeof(Chunk) - 1) / sizeof(Chunk));
  int argument = 0;
  for (const v1::Param& param : kernel.params()) {
    size_t place = start + param.offset();
    parameters_.push_back(Place(place));
    if (param.kind() == v1::Param::SYMBOL_I32) {
      numbers_.push_back({records_.size() - 1, place, &param.symbol()});
      HACKC_RETURN_IF_ERROR(SetNumber(numbers_.back()));
      continue;
    }
    int source = param.kind() == v1::Param::TENSOR_MAP
                     ? static_cast<int>(param.tensor_map().buffer_argument())
                     : argument;
    ++argument;
    HACKC_RETURN_IF_ERROR(Annotate(AddArgument(flat.launch->args(source), param, place,
                                               flat.iteration, tensors, workspace_bytes),
                                   absl::StrCat("argument ", param.name())));
  }
  return absl::OkStatus();
}

absl::Status LaunchList::AddArgument(const v1::BufferRef& ref, const v1::Param& param, size_t place,
                                     uint32_t iteration, const ResidentTensors& tensors,
                                     int64_t workspace_bytes) {
  const v1::Buffer& buffer = program_->buffers(ref.buffer());
  HACKC_ASSIGN_OR_RETURN(int64_t offset, Evaluate(ref.offset(), symbols_));
  HACKC_ASSIGN_OR_RETURN(int64_t bytes, EvaluateBytes(buffer, symbols_));
  if (offset < 0 || offset > bytes) {
    return absl::OutOfRangeError(
        absl::StrCat("offset ", offset, " is outside the ", bytes, " bytes of ", buffer.name()));
  }
  size_t record = records_.size() - 1;
  switch (buffer.kind()) {
    case v1::Buffer::WORKSPACE: {
      HACKC_ASSIGN_OR_RETURN(int64_t start, Evaluate(buffer.offset(), symbols_));
      if (start < 0 || start % 256 != 0 || start > workspace_bytes ||
          bytes > workspace_bytes - start) {
        return absl::OutOfRangeError(absl::StrCat(buffer.name(), " at ", start, " with ", bytes,
                                                  " bytes does not fit the workspace of ",
                                                  workspace_bytes, " bytes"));
      }
      patches_.push_back({record, &param, place, -1, ref.buffer(), start + offset});
      return absl::OkStatus();
    }
    case v1::Buffer::INPUT:
    case v1::Buffer::OUTPUT:
    case v1::Buffer::STATE:
      // One tensor for all iterations, or one for each.
      patches_.push_back(
          {record, &param, place,
           slots_[ref.buffer()] + static_cast<int>(buffer.repeat_count() > 1 ? iteration : 0),
           ref.buffer(), offset});
      return absl::OkStatus();
    default: {
      CUdeviceptr address = tensors.Address(ref.buffer(), iteration);
      if (address == 0) {
        return absl::FailedPreconditionError(absl::StrCat(
            buffer.name(), " has no tensor yet; bind the weights and call prepare first"));
      }
      return SetPointer(param, place, address + offset);
    }
  }
}

absl::Status LaunchList::SetNumber(const Number& number) {
  int64_t value = symbols_.at(*number.symbol);
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
    return absl::OutOfRangeError(absl::StrCat(*number.symbol, " = ", value, " exceeds 32 bits"));
  }
  int32_t narrow = static_cast<int32_t>(value);
  std::memcpy(Place(number.place), &narrow, sizeof(narrow));
  return absl::OkStatus();
}

absl::StatusOr<bool> LaunchList::TakeSymbols(const SymbolValues& symbols, int64_t workspace_bytes) {
  if (symbols.size() != symbols_.size() || workspace_bytes != workspace_bytes_) return false;
  for (const auto& [name, value] : symbols) {
    auto found = symbols_.find(name);
    if (found == symbols_.end()) return false;
    if (found->second != value && shaping_symbols_.count(name)) return false;
    if (value < std::numeric_limits<int32_t>::min() ||
        value > std::numeric_limits<int32_t>::max()) {
      return false;  // building anew says which kernel it is for
    }
  }
  for (uint32_t kernel : kernels_) {
    HACKC_RETURN_IF_ERROR(CheckValid(program_->kernels(kernel), symbols));
  }
  symbols_ = symbols;
  for (const Number& number : numbers_) HACKC_RETURN_IF_ERROR(SetNumber(number));
  return true;
}

absl::Status LaunchList::SetPointer(const v1::Param& param, size_t place, CUdeviceptr address) {
  if (param.alignment() > 1 && address % param.alignment() != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "address ", absl::Hex(address), " is not aligned to ", param.alignment(), " bytes"));
  }
  if (param.kind() == v1::Param::BUFFER) {
    std::memcpy(Place(place), &address, sizeof(address));
    return absl::OkStatus();
  }
  return EncodeTensorMap(*driver_, param.tensor_map(), address, symbols_,
                         reinterpret_cast<CUtensorMap*>(Place(place)));
}

absl::Status LaunchList::Apply(const CallerAddresses& addresses) {
  if (addresses == applied_) return absl::OkStatus();
  applied_ = {};  // a failure half way leaves a mixture that must not be taken for applied
  for (const Patch& patch : patches_) {
    CUdeviceptr base = patch.slot < 0 ? addresses.workspace : addresses.tensors[patch.slot];
    const std::string& name = patch.slot < 0 ? kWorkspace : program_->buffers(patch.buffer).name();
    if (base == 0) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": null pointer"));
    }
    absl::Status set = SetPointer(*patch.param, patch.place, base + patch.offset);
    if (!set.ok()) return Annotate(set, absl::StrCat(Where(patch.record), ": ", name));
  }
  applied_ = addresses;
  return absl::OkStatus();
}

absl::Status LaunchList::Launch(const CallerAddresses& addresses, CUstream stream) {
  HACKC_RETURN_IF_ERROR(Apply(addresses));
  for (size_t i = 0; i < records_.size(); ++i) {
    const Record& record = records_[i];
    const auto& [gx, gy, gz] = record.grid;
    if (IsEmpty(record)) continue;
    void** parameters = parameters_.data() + record.first_parameter;
    CUresult result;
    if (record.cluster == std::array<uint32_t, 3>{1, 1, 1}) {
      result =
          driver_->LaunchKernel(record.function, gx, gy, gz, record.block[0], record.block[1],
                                record.block[2], record.shared_bytes, stream, parameters, nullptr);
    } else {
      CUlaunchAttribute attribute{};
      attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      attribute.value.clusterDim = {record.cluster[0], record.cluster[1], record.cluster[2]};
      CUlaunchConfig config{};
      config.gridDimX = gx, config.gridDimY = gy, config.gridDimZ = gz;
      config.blockDimX = record.block[0];
      config.blockDimY = record.block[1];
      config.blockDimZ = record.block[2];
      config.sharedMemBytes = record.shared_bytes;
      config.hStream = stream;
      config.attrs = &attribute;
      config.numAttrs = 1;
      result = driver_->LaunchKernelEx(&config, record.function, parameters, nullptr);
    }
    if (result != CUDA_SUCCESS) return driver_->Check(result, absl::StrCat(Where(i), ": launch"));
  }
  return absl::OkStatus();
}

// CUDA refuses an empty grid; there is nothing to do then.
bool LaunchList::IsEmpty(const Record& record) {
  return record.grid[0] == 0 || record.grid[1] == 0 || record.grid[2] == 0;
}

CUDA_KERNEL_NODE_PARAMS LaunchList::NodeParameters(const Record& record) const {
  CUDA_KERNEL_NODE_PARAMS node{};
  node.func = record.function;
  node.gridDimX = record.grid[0], node.gridDimY = record.grid[1], node.gridDimZ = record.grid[2];
  node.blockDimX = record.block[0];
  node.blockDimY = record.block[1];
  node.blockDimZ = record.block[2];
  node.sharedMemBytes = record.shared_bytes;
  node.kernelParams = const_cast<void**>(parameters_.data()) + record.first_parameter;
  return node;
}

absl::Status LaunchList::AddTo(CUgraph graph, const CallerAddresses& addresses,
                               const std::set<std::string>& kernels,
                               std::vector<CUgraphNode>* nodes) {
  HACKC_RETURN_IF_ERROR(Apply(addresses));
  nodes->assign(records_.size(), nullptr);
  const CUgraphNode* before = nullptr;
  for (size_t i = 0; i < records_.size(); ++i) {
    const Record& record = records_[i];
    if (IsEmpty(record) || (!kernels.empty() && !kernels.count(KernelName(i)))) continue;
    CUgraphNode* node = &(*nodes)[i];
    CUDA_KERNEL_NODE_PARAMS parameters = NodeParameters(record);
    HACKC_RETURN_IF_ERROR(driver_->Check(
        driver_->GraphAddKernelNode(node, graph, before, before != nullptr ? 1 : 0, &parameters),
        absl::StrCat(Where(i), ": cuGraphAddKernelNode")));
    before = node;
    if (record.cluster == std::array<uint32_t, 3>{1, 1, 1}) continue;
    CUkernelNodeAttrValue value{};
    value.clusterDim = {record.cluster[0], record.cluster[1], record.cluster[2]};
    HACKC_RETURN_IF_ERROR(driver_->Check(
        driver_->GraphKernelNodeSetAttribute(*node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value),
        absl::StrCat(Where(i), ": cuGraphKernelNodeSetAttribute")));
  }
  return absl::OkStatus();
}

absl::Status LaunchList::UpdateNumbers(CUgraphExec executable,
                                       const std::vector<CUgraphNode>& nodes) const {
  for (size_t i = 0; i < numbers_.size(); ++i) {
    const size_t record = numbers_[i].record;
    // A record's numbers lie side by side; one call takes them all.
    if ((i > 0 && numbers_[i - 1].record == record) || nodes[record] == nullptr) continue;
    CUDA_KERNEL_NODE_PARAMS parameters = NodeParameters(records_[record]);
    HACKC_RETURN_IF_ERROR(driver_->Check(
        driver_->GraphExecKernelNodeSetParams(executable, nodes[record], &parameters),
        absl::StrCat(Where(record), ": cuGraphExecKernelNodeSetParams")));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<LaunchArgument>> LaunchList::Arguments(size_t launch) const {
  const Record& record = records_[launch];
  std::vector<LaunchArgument> arguments;
  size_t parameter = record.first_parameter;
  int next = 0;
  for (const v1::Param& param : program_->kernels(record.kernel).params()) {
    const void* place = parameters_[parameter++];
    if (param.kind() == v1::Param::SYMBOL_I32) continue;
    const v1::Buffer& buffer = program_->buffers(record.launch->args(next++).buffer());
    if (param.kind() != v1::Param::BUFFER) continue;  // its base is another argument's
    LaunchArgument& argument = arguments.emplace_back();
    argument.name = buffer.name();
    argument.kind = buffer.kind();
    argument.dtype = buffer.dtype();
    argument.written = param.written();
    HACKC_ASSIGN_OR_RETURN(argument.bytes, EvaluateBytes(buffer, symbols_));
    for (const v1::DimExpr& extent : buffer.shape()) {
      HACKC_ASSIGN_OR_RETURN(int64_t value, Evaluate(extent, symbols_));
      argument.shape.push_back(value);
    }
    std::memcpy(&argument.address, place, sizeof(argument.address));
  }
  return arguments;
}

std::string LaunchList::Where(size_t record) const {
  const Record& at = records_[record];
  return absl::StrCat("launch ", record, " (", program_->kernels(at.kernel).name(), ", iteration ",
                      at.iteration, ")");
}

}  // namespace hackc::client
