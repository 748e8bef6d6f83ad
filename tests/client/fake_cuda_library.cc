// SPDX-License-Identifier: MIT
// A libcuda.so.1 for machines without a GPU: device memory is host memory, any bytes are code, and
// a launch only counts. It shows that libhackc.so, its Python wrapper and hackc-selftest load a
// driver and walk through a real program; what kernels compute is judged elsewhere.
//
// Code of the form "cubin of NAME gpu:WORD;" is run: a kernel (x, y, seq) that writes y[seq, 64] =
// 2 x, and takes 10 us of a clock that only launches and copies move. WORD says how it goes wrong:
// Other code takes 0.1 s of that clock and writes nothing.
//   double   not at all          wrong    the last element is 0      behind, before   writes 4
//            bytes outside y
//   crash    SIGSEGV             hang     never ends                 illegal          an error that
//            stays
//   no_time, fast, noisy         the clock stands still, nearly so, or changes its pace from event
//                                to event
//   once:FILE                    SIGSEGV unless FILE is there, which it makes
//   in_graph, slow_graph         an error that stays, or 50 ms of real time, in a graph only
// HACKC_FAKE_CUDA_LARGEST in the environment: no allocation of more bytes succeeds.
#include <cuda.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#undef cuEventElapsedTime

namespace {
template <typename T>
T Handle() {
  return reinterpret_cast<T>(static_cast<uintptr_t>(0x10));
}
long launches = 0;
long allocations = 0;  // of device memory, that are there
// As on an H200: copies reach 4 TB/s, but 3.55 in memory that was taken after some had been freed,
// and soon after a kernel ran.
bool any_freed = false;
std::set<CUdeviceptr> slow;
std::chrono::steady_clock::time_point last_launch;
long waits = 0;   // for all that the device does
long graphs = 0;  // that are there
double clock_us = 0;
int events = 0;       // recorded so far
bool broken = false;  // every call fails from now on

struct Code {
  std::string word;  // empty: it is not run
};
struct Node {
  const Code* code;
  const float* x = nullptr;
  float* y = nullptr;
  int seq = 0;
};
std::vector<Node> nodes;  // of the latest graph

Node MakeNode(CUfunction function, void** parameters) {
  Node node{reinterpret_cast<const Code*>(function)};
  if (node.code->word.empty()) return node;
  std::memcpy(&node.x, parameters[0], sizeof(node.x));
  std::memcpy(&node.y, parameters[1], sizeof(node.y));
  std::memcpy(&node.seq, parameters[2], sizeof(node.seq));
  return node;
}

// True once, over all processes.
bool First(const std::string& file) {
  const int made = open(file.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
  if (made >= 0) close(made);
  return made >= 0;
}

void Run(const Node& node) {
  ++launches;
  last_launch = std::chrono::steady_clock::now();
  const std::string& word = node.code->word;
  if (word.empty()) {
    clock_us += 1e5;  // nothing of it is known: slower than any kernel of a small model
    return;
  }
  const int count = node.seq * 64;
  for (int i = 0; i < count; ++i) node.y[i] = 2 * node.x[i];
  if (word == "wrong") node.y[count - 1] = 0;
  if (word == "behind") node.y[count] = 7;
  if (word == "before") node.y[-1] = 7;
  if (word == "illegal") broken = true;
  if (word == "crash" || (word.rfind("once:", 0) == 0 && First(word.substr(5)))) {
    signal(SIGSEGV, SIG_DFL);  // past a sanitizer's handler
    raise(SIGSEGV);
  }
  while (word == "hang") pause();
  clock_us += word == "no_time" ? 0 : word == "fast" ? 1e-3 : 10;
  if (word == "noisy") clock_us += 10 * (events / 2 % 5);
}

CUresult Result() { return broken ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS; }
}  // namespace

extern "C" {

long fake_cuda_launches() { return launches; }
long fake_cuda_allocations() { return allocations; }
long fake_cuda_waits() { return waits; }
long fake_cuda_graphs() { return graphs; }

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
// NVRTC, where it finds a driver, asks for more than there is.
CUresult cuGetExportTable(const void**, const CUuuid*) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  std::strncpy(name, "Fake GPU", length);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  *value = 0;
  if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) *value = 9;
  if (attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) *value = 232448;
  if (attribute == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE) *value = 1 << 20;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  *context = Handle<CUcontext>();
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
CUresult cuCtxPushCurrent(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxPopCurrent(CUcontext*) { return CUDA_SUCCESS; }
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  auto* code = new Code;
  const std::string start = "cubin of ", mark = " gpu:";
  if (std::strncmp(static_cast<const char*>(image), start.c_str(), start.size()) == 0) {
    const std::string text = static_cast<const char*>(image);
    const size_t at = text.find(mark) + mark.size();
    code->word = text.substr(at, text.find(';') - at);
  }
  *module = reinterpret_cast<CUmodule>(code);
  return Result();
}
CUresult cuModuleUnload(CUmodule module) {
  delete reinterpret_cast<Code*>(module);
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char*) {
  *function = reinterpret_cast<CUfunction>(module);
  return CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute, CUfunction) {
  *value = 1024;
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }
CUresult cuLaunchKernel(CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, unsigned, CUstream, void** parameters, void**) {
  Run(MakeNode(function, parameters));
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig*, CUfunction function, void** parameters, void**) {
  Run(MakeNode(function, parameters));
  return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent* event, unsigned) {
  *event = reinterpret_cast<CUevent>(new double(0));
  return Result();
}
CUresult cuEventDestroy(CUevent event) {
  delete reinterpret_cast<double*>(event);
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream) {
  ++events;
  *reinterpret_cast<double*>(event) = clock_us;
  return CUDA_SUCCESS;
}
CUresult cuEventSynchronize(CUevent) { return Result(); }
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  const double us = *reinterpret_cast<double*>(end) - *reinterpret_cast<double*>(start);
  *milliseconds = static_cast<float>(us / 1000);
  return CUDA_SUCCESS;
}
CUresult cuTensorMapEncodeTiled(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  return CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr* address, size_t bytes) {
  const char* largest = std::getenv("HACKC_FAKE_CUDA_LARGEST");
  if (largest != nullptr && bytes > std::strtoull(largest, nullptr, 10)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(memory, 0, bytes);
  *address = reinterpret_cast<CUdeviceptr>(memory);
  if (any_freed) slow.insert(*address);
  ++allocations;
  return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr address) {
  --allocations;
  any_freed = true;
  slow.erase(address);
  std::free(reinterpret_cast<void*>(address));
  return CUDA_SUCCESS;
}
CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  *memory = std::malloc(bytes);
  return *memory == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void* memory) {
  std::free(memory);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return Result();
}
CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return Result();
}
CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  const bool hot = std::chrono::steady_clock::now() - last_launch < std::chrono::milliseconds(100);
  clock_us += 2.0 * static_cast<double>(bytes) / (slow.count(to) > 0 || hot ? 3.55e6 : 4e6);
  return Result();
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream) {
  std::fill_n(reinterpret_cast<unsigned*>(to), count, value);
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream) {
  std::memset(reinterpret_cast<void*>(to), value, bytes);
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream) { return Result(); }
CUresult cuCtxSynchronize() {
  ++waits;
  return Result();
}
CUresult cuGraphCreate(CUgraph* graph, unsigned) {
  *graph = Handle<CUgraph>();
  nodes.clear();
  return CUDA_SUCCESS;
}
CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph, const CUgraphNode*, size_t,
                              const CUDA_KERNEL_NODE_PARAMS* parameters) {
  *node = Handle<CUgraphNode>();
  nodes.push_back(MakeNode(parameters->func, parameters->kernelParams));
  return CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode, CUkernelNodeAttrID,
                                       const CUkernelNodeAttrValue*) {
  return CUDA_SUCCESS;
}
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS*) {
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph, unsigned long long) {
  *executable = Handle<CUgraphExec>();
  ++graphs;
  return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec, CUstream) {
  if (nodes.front().code->word == "in_graph") broken = true;
  if (nodes.front().code->word == "slow_graph") usleep(50'000);
  for (const Node& node : nodes) Run(node);
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph) { return CUDA_SUCCESS; }
CUresult cuGraphExecDestroy(CUgraphExec) {
  --graphs;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult, const char** name) {
  *name = broken ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_FAKE";
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "made up";
  return CUDA_SUCCESS;
}

}  // extern "C"
