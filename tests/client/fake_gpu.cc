// SPDX-License-Identifier: MIT
#include "tests/client/fake_gpu.h"

#include <cstdlib>

namespace hackc::client {
namespace {

FakeGpu* current = nullptr;

// Functions are 1-based indices of kernels, in pointer clothing.
int IndexOf(CUfunction function) {
  return static_cast<int>(reinterpret_cast<uintptr_t>(function)) - 1;
}

CUcontext TheContext() { return reinterpret_cast<CUcontext>(0x77); }

}  // namespace

FakeGpu::FakeGpu(const v1::Program& program) : program_(program) {
  current = this;
  driver_.Init = [](unsigned) { return CUDA_SUCCESS; };
  driver_.DeviceGet = [](CUdevice* device, int ordinal) {
    *device = ordinal;
    return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  };
  driver_.DeviceGetName = [](char* name, int length, CUdevice) {
    std::strncpy(name, "Fake GPU", length);
    return CUDA_SUCCESS;
  };
  driver_.DeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice) {
    switch (attribute) {
      case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = current->major;
        return CUDA_SUCCESS;
      case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = current->minor;
        return CUDA_SUCCESS;
      case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = current->shared_optin;
        return CUDA_SUCCESS;
      default: return CUDA_ERROR_INVALID_VALUE;
    }
  };
  driver_.PrimaryContextRetain = [](CUcontext* context, CUdevice) {
    *context = TheContext();
    ++current->contexts;
    return CUDA_SUCCESS;
  };
  driver_.PrimaryContextRelease = [](CUdevice) {
    --current->contexts;
    return CUDA_SUCCESS;
  };
  driver_.ContextPush = [](CUcontext context) {
    if (context != TheContext()) return CUDA_ERROR_INVALID_CONTEXT;
    ++current->pushed;
    return CUDA_SUCCESS;
  };
  driver_.ContextPop = [](CUcontext*) {
    --current->pushed;
    return CUDA_SUCCESS;
  };
  driver_.ModuleLoadData = [](CUmodule* module, const void* image) {
    for (int i = 0; i < current->program_.kernels_size(); ++i) {
      if (current->program_.kernels(i).entry() == static_cast<const char*>(image)) {
        *module = reinterpret_cast<CUmodule>(static_cast<uintptr_t>(i + 1));
        return CUDA_SUCCESS;
      }
    }
    return CUDA_ERROR_INVALID_IMAGE;
  };
  driver_.ModuleUnload = [](CUmodule) { return CUDA_SUCCESS; };
  driver_.ModuleGetFunction = [](CUfunction* function, CUmodule module, const char* name) {
    int index = static_cast<int>(reinterpret_cast<uintptr_t>(module)) - 1;
    *function = reinterpret_cast<CUfunction>(module);
    return current->program_.kernels(index).entry() == name ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
  };
  driver_.FunctionGetAttribute = [](int* value, CUfunction_attribute, CUfunction) {
    *value = 1024;
    return CUDA_SUCCESS;
  };
  driver_.FunctionSetAttribute = [](CUfunction, CUfunction_attribute attribute, int value) {
    current->attributes_set.insert({attribute, value});
    return CUDA_SUCCESS;
  };
  driver_.FunctionGetParamInfo = [](CUfunction function, size_t index, size_t* offset,
                                    size_t* size) {
    const v1::Kernel& kernel = current->program_.kernels(IndexOf(function));
    if (index >= static_cast<size_t>(kernel.params_size())) return CUDA_ERROR_INVALID_VALUE;
    *offset = kernel.params(index).offset() + current->wrong_parameter_offset;
    *size = kernel.params(index).size();
    return CUDA_SUCCESS;
  };
  driver_.LaunchKernel = [](CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                            unsigned by, unsigned bz, unsigned shared, CUstream stream,
                            void** parameters, void**) {
    Launch launch;
    launch.grid = {gx, gy, gz};
    launch.block = {bx, by, bz};
    launch.cluster = {1, 1, 1};
    launch.shared = shared;
    launch.stream = stream;
    return DoLaunch(function, launch, parameters);
  };
  driver_.LaunchKernelEx = [](const CUlaunchConfig* config, CUfunction function, void** parameters,
                              void**) {
    Launch launch;
    launch.grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
    launch.block = {config->blockDimX, config->blockDimY, config->blockDimZ};
    const auto& cluster = config->attrs[0].value.clusterDim;
    launch.cluster = {cluster.x, cluster.y, cluster.z};
    launch.shared = config->sharedMemBytes;
    launch.stream = config->hStream;
    return DoLaunch(function, launch, parameters);
  };
  // The map's first bytes tell the test what was asked for.
  driver_.TensorMapEncodeTiled = [](CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                    void* base, const cuuint64_t* dims, const cuuint64_t* strides,
                                    const cuuint32_t* box, const cuuint32_t*, CUtensorMapInterleave,
                                    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                                    CUtensorMapFloatOOBfill) {
    map->opaque[0] = reinterpret_cast<uint64_t>(base);
    map->opaque[1] = type;
    map->opaque[2] = rank;
    map->opaque[3] = dims[0];
    map->opaque[4] = rank > 1 ? dims[1] : 0;
    map->opaque[5] = rank > 1 ? strides[0] : 0;
    map->opaque[6] = box[0];
    map->opaque[7] = swizzle;
    return CUDA_SUCCESS;
  };
  driver_.MemAlloc = [](CUdeviceptr* address, size_t bytes) {
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (bytes > current->memory_limit) return CUDA_ERROR_OUT_OF_MEMORY;
    void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    std::memset(memory, 0, bytes);
    current->allocations.insert(memory);
    *address = reinterpret_cast<CUdeviceptr>(memory);
    return CUDA_SUCCESS;
  };
  driver_.MemFree = [](CUdeviceptr address) {
    void* memory = reinterpret_cast<void*>(address);
    if (!current->allocations.erase(memory)) return CUDA_ERROR_INVALID_VALUE;
    std::free(memory);
    return CUDA_SUCCESS;
  };
  driver_.MemHostAlloc = [](void** memory, size_t bytes, unsigned) {
    if (bytes > current->host_memory_limit) return CUDA_ERROR_OUT_OF_MEMORY;
    *memory = std::malloc(bytes);
    current->host_allocations.insert(*memory);
    return CUDA_SUCCESS;
  };
  driver_.MemFreeHost = [](void* memory) {
    if (!current->host_allocations.erase(memory)) return CUDA_ERROR_INVALID_VALUE;
    std::free(memory);
    return CUDA_SUCCESS;
  };
  driver_.MemcpyHostToDevice = [](CUdeviceptr to, const void* from, size_t bytes) {
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return CUDA_SUCCESS;
  };
  driver_.MemcpyDeviceToHost = [](void* to, CUdeviceptr from, size_t bytes) {
    std::memcpy(to, reinterpret_cast<void*>(from), bytes);
    return CUDA_SUCCESS;
  };
  driver_.MemsetD32Async = [](CUdeviceptr to, unsigned value, size_t count, CUstream) {
    std::fill_n(reinterpret_cast<unsigned*>(to), count, value);
    return CUDA_SUCCESS;
  };
  driver_.MemsetD8Async = [](CUdeviceptr to, unsigned char value, size_t bytes, CUstream) {
    std::memset(reinterpret_cast<void*>(to), value, bytes);
    return CUDA_SUCCESS;
  };
  driver_.StreamSynchronize = [](CUstream) {
    ++current->synchronized;
    return CUDA_SUCCESS;
  };
  driver_.ContextSynchronize = [] {
    ++current->synchronized;
    return CUDA_SUCCESS;
  };
  // Nodes are 1-based indices into `captured`, in pointer clothing.
  driver_.GraphCreate = [](CUgraph* graph, unsigned) {
    *graph = reinterpret_cast<CUgraph>(0x6);
    current->captured.clear();
    ++current->graphs;
    return CUDA_SUCCESS;
  };
  driver_.GraphAddKernelNode = [](CUgraphNode* node, CUgraph, const CUgraphNode* before,
                                  size_t count, const CUDA_KERNEL_NODE_PARAMS* parameters) {
    const size_t index = current->captured.size();
    // A chain: each node waits for the one before.
    if (count != (index > 0 ? 1 : 0) ||
        (count == 1 && reinterpret_cast<uintptr_t>(*before) != index)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    current->captured.push_back(NodeLaunch(*parameters));
    *node = reinterpret_cast<CUgraphNode>(index + 1);
    return CUDA_SUCCESS;
  };
  driver_.GraphKernelNodeSetAttribute = [](CUgraphNode node, CUkernelNodeAttrID id,
                                           const CUkernelNodeAttrValue* value) {
    if (id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) return CUDA_ERROR_INVALID_VALUE;
    const auto& cluster = value->clusterDim;
    current->captured.at(reinterpret_cast<uintptr_t>(node) - 1).cluster = {cluster.x, cluster.y,
                                                                           cluster.z};
    return CUDA_SUCCESS;
  };
  driver_.GraphExecKernelNodeSetParams = [](CUgraphExec, CUgraphNode node,
                                            const CUDA_KERNEL_NODE_PARAMS* parameters) {
    Launch& launch = current->captured.at(reinterpret_cast<uintptr_t>(node) - 1);
    std::vector<unsigned> cluster = launch.cluster;
    launch = NodeLaunch(*parameters);
    launch.cluster = cluster;
    ++current->nodes_updated;
    return CUDA_SUCCESS;
  };
  driver_.GraphInstantiate = [](CUgraphExec* executable, CUgraph, unsigned long long) {
    *executable = reinterpret_cast<CUgraphExec>(0x8);
    return CUDA_SUCCESS;
  };
  driver_.GraphLaunch = [](CUgraphExec, CUstream) {
    for (const Launch& launch : current->captured) {
      current->launches.push_back(launch);
      current->kernels.at(launch.name)(launch);
    }
    return CUDA_SUCCESS;
  };
  driver_.GraphDestroy = [](CUgraph) {
    --current->graphs;
    return CUDA_SUCCESS;
  };
  driver_.GraphExecDestroy = [](CUgraphExec) { return CUDA_SUCCESS; };
  driver_.GetErrorName = [](CUresult result, const char** name) {
    *name = result == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
    return CUDA_SUCCESS;
  };
  driver_.GetErrorString = [](CUresult, const char** text) {
    *text = "made up";
    return CUDA_SUCCESS;
  };
}

FakeGpu::~FakeGpu() {
  for (void* memory : allocations) std::free(memory);
  current = nullptr;
}

std::vector<std::string> FakeGpu::Cubins() const {
  std::vector<std::string> cubins;
  for (const v1::Kernel& kernel : program_.kernels()) cubins.push_back(kernel.entry());
  return cubins;
}

FakeGpu::Launch FakeGpu::NodeLaunch(const CUDA_KERNEL_NODE_PARAMS& node) {
  Launch launch;
  launch.grid = {node.gridDimX, node.gridDimY, node.gridDimZ};
  launch.block = {node.blockDimX, node.blockDimY, node.blockDimZ};
  launch.cluster = {1, 1, 1};
  launch.shared = node.sharedMemBytes;
  TakeParameters(node.func, node.kernelParams, &launch);
  return launch;
}

void FakeGpu::TakeParameters(CUfunction function, void** parameters, Launch* taken) {
  Launch& launch = *taken;
  const v1::Kernel& kernel = current->program_.kernels(IndexOf(function));
  launch.kernel = &kernel;
  launch.name = kernel.name();
  for (int i = 0; i < kernel.params_size(); ++i) {
    const v1::Param& param = kernel.params(i);
    launch.parameters.resize(param.offset() + param.size());
    std::memcpy(&launch.parameters[param.offset()], parameters[i], param.size());
  }
}

CUresult FakeGpu::DoLaunch(CUfunction function, Launch launch, void** parameters) {
  if (current->next_launch_result != CUDA_SUCCESS) return current->next_launch_result;
  TakeParameters(function, parameters, &launch);
  current->launches.push_back(launch);
  if (auto body = current->kernels.find(launch.name); body != current->kernels.end()) {
    body->second(launch);
  }
  return CUDA_SUCCESS;
}

}  // namespace hackc::client
