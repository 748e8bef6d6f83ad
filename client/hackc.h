// SPDX-License-Identifier: MIT
// Runs compiled models from C and from every language with a C interface (libhackc.so).
//
//   hackc_program* program;
//   if (hackc_program_open("out", 0, NULL, &program) != HACKC_OK) fail(hackc_last_error());
//   for (i = 0; hackc_weight_info(program, i, &info) == HACKC_OK; ++i)
//     hackc_bind_weight(program, info.name, pointer, info.dtype, info.rank, info.shape, on_device);
//   hackc_prepare(program, stream);
//   hackc_symbol symbols[] = {{"batch", 1}, {"seq", 13}};
//   hackc_workspace_bytes(program, "prefill", symbols, 2, &bytes);
//   hackc_tensor tensors[] = {{"input_ids", ids, 0}, {"logits", logits, 0}};
//   hackc_run(program, "prefill", symbols, 2, tensors, 2, workspace, bytes, stream);
//
// With a key/value cache the program has a symbol "past" and an entry point "decode" besides
// "prefill", and hackc_tensor_info_at lists the cache's tensors as HACKC_KIND_STATE. The caller
// allocates them once, need not initialise them, and gives them to every call of one batch of
// sequences; "past" is how many tokens they hold.
//
// Every function returns HACKC_OK or an error code and never throws, exits or prints;
// hackc_last_error has the reason, for the calling thread. Streams are CUstream (what cudaStream_t
// is); NULL is the default stream. The device's primary context is used, as CUDA's runtime and
// PyTorch do. hackc_run and hackc_graph_launch neither synchronise nor allocate GPU memory; what a
// program keeps on the GPU comes from the caller's allocator if one is given, else from cuMemAlloc.
// Thread safety: calls on different programs may run at once, calls on one program may not, but for
// hackc_memory_allocate and hackc_memory_release.
//
// Stability: hackc_version() is that of the library. Until 1.0 functions and structs may change
// with the minor version, which is in the SONAME (libhackc.so.0.1), so that a program never starts
// with a library of another layout; a patch version changes neither. Codes and enumerators keep
// their numbers, and later versions add some: take an unknown code for a failure.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HACKC_API __attribute__((visibility("default")))
#define HACKC_MAX_RANK 8

// The numbers of google.rpc.Code.
enum {
  HACKC_OK = 0,
  HACKC_CANCELLED = 1,
  HACKC_UNKNOWN = 2,
  HACKC_INVALID_ARGUMENT = 3,
  HACKC_DEADLINE_EXCEEDED = 4,
  HACKC_NOT_FOUND = 5,
  HACKC_ALREADY_EXISTS = 6,
  HACKC_PERMISSION_DENIED = 7,
  HACKC_RESOURCE_EXHAUSTED = 8,
  HACKC_FAILED_PRECONDITION = 9,
  HACKC_ABORTED = 10,
  HACKC_OUT_OF_RANGE = 11,
  HACKC_UNIMPLEMENTED = 12,
  HACKC_INTERNAL = 13,
  HACKC_UNAVAILABLE = 14,
  HACKC_DATA_LOSS = 15,
  HACKC_UNAUTHENTICATED = 16
};

// The numbers of hackc.v1.DType.
enum {
  HACKC_FLOAT32 = 1,
  HACKC_BFLOAT16 = 2,
  HACKC_FLOAT16 = 3,
  HACKC_INT32 = 4,
  HACKC_INT64 = 5,
  HACKC_BOOL = 6,
  HACKC_FLOAT64 = 7
};

// The numbers of hackc.v1.Buffer.Kind.
enum { HACKC_KIND_INPUT = 0, HACKC_KIND_OUTPUT = 1, HACKC_KIND_WEIGHT = 2, HACKC_KIND_STATE = 6 };

typedef struct hackc_program hackc_program;
typedef struct hackc_graph hackc_graph;

typedef struct {
  const char* name;
  int64_t value;
} hackc_symbol;

// A dense row-major tensor on the device; bytes of 0 is not checked.
typedef struct {
  const char* name;
  void* data;
  uint64_t bytes;
} hackc_tensor;

// `name` belongs to the program and lives as long as it.
typedef struct {
  const char* name;
  int32_t kind;
  int32_t dtype;
  int32_t rank;
  int64_t shape[HACKC_MAX_RANK];
  uint64_t bytes;
} hackc_tensor_info;

// A tensor of one launch; `kernel` and the names belong to the graph.
typedef struct {
  const char* kernel;
  hackc_tensor_info tensor;
  void* address;
  int32_t written;
} hackc_argument_info;

typedef struct {
  const char* name;
  int64_t min;
  int64_t max;
} hackc_symbol_range;

// Where a program's GPU memory comes from: the weights that it copies, its constants and prepared
// weights. Called by the thread that is in a function of this header. Must live as long as the
// program.
typedef struct {
  void* user;
  void* (*allocate)(void* user,
                    uint64_t bytes);  // aligned to 256 bytes; NULL when there is no room
  void (*release)(void* user, void* data);
} hackc_allocator;

typedef struct {
  const void* data;
  uint64_t bytes;
} hackc_bytes;

// Reads a folder written by `hackc-client submit --out` and loads it onto CUDA device `device`.
HACKC_API int hackc_program_open(const char* directory, int device,
                                 const hackc_allocator* allocator, hackc_program** program);
// The same from memory: ProgramReady.bytes as the server sent them, and the cubins in any order.
HACKC_API int hackc_program_load(hackc_bytes program_bytes, const hackc_bytes* cubins,
                                 size_t cubin_count, int device, const hackc_allocator* allocator,
                                 hackc_program** program);
// Frees it, without waiting for the GPU; its graphs must be gone. Memory of hackc_memory_allocate
// that is not released yet stays valid, and hackc_memory_release then is the one function that
// still takes the program.
HACKC_API void hackc_program_close(hackc_program* program);
// Waits for all that the device's primary context has to do.
HACKC_API int hackc_synchronize(hackc_program* program);

// GPU memory for callers without a CUDA library of their own, aligned to 256 bytes; from the
// program's allocator, which must live until the last piece is released.
HACKC_API int hackc_memory_allocate(hackc_program* program, uint64_t bytes, void** data);
HACKC_API int hackc_memory_release(hackc_program* program, void* data);
// Sets `count` int32 on the GPU, on `stream`: lengths of sequences, for instance, between two
// launches of a graph.
HACKC_API int hackc_memory_fill(hackc_program* program, void* data, int32_t value, uint64_t count,
                                void* stream);

// HACKC_OUT_OF_RANGE when there is no weight, symbol or tensor of this index.
HACKC_API int hackc_weight_info(const hackc_program* program, size_t index,
                                hackc_tensor_info* info);
HACKC_API int hackc_symbol_info(const hackc_program* program, size_t index,
                                hackc_symbol_range* range);
// Inputs, outputs and states of an entry point at these symbol values.
HACKC_API int hackc_tensor_info_at(const hackc_program* program, const char* entry,
                                   const hackc_symbol* symbols, size_t symbol_count, size_t index,
                                   hackc_tensor_info* info);

// A tensor on the device is used where it lies and must outlive the program; one in host memory is
// copied before the call returns. HACKC_NOT_FOUND for a name that the program does not have.
HACKC_API int hackc_bind_weight(hackc_program* program, const char* name, const void* data,
                                int dtype, int rank, const int64_t* shape, int is_device);
// Binds every weight from a Hugging Face folder (model.safetensors, or its shards), with floats
// converted to the program's dtype. HACKC_NOT_FOUND naming the weights that are missing; with
// `strict` also HACKC_INVALID_ARGUMENT naming those that the program has no use for. `progress`,
// unless NULL, is told after each tensor; HACKC_CANCELLED when it returns something other than 0.
// Host memory never holds more than one converted tensor: the files are mapped.
typedef int (*hackc_progress)(void* user, uint64_t bytes_done, uint64_t bytes_total);
HACKC_API int hackc_bind_folder(hackc_program* program, const char* directory, int strict,
                                hackc_progress progress, void* user);
// Runs the program's one-time preparation of the weights and waits for it.
HACKC_API int hackc_prepare(hackc_program* program, void* stream);

HACKC_API int hackc_workspace_bytes(const hackc_program* program, const char* entry,
                                    const hackc_symbol* symbols, size_t symbol_count,
                                    uint64_t* bytes);
// `workspace` is device memory aligned to 256 bytes. Returns once all is launched on `stream`.
HACKC_API int hackc_run(hackc_program* program, const char* entry, const hackc_symbol* symbols,
                        size_t symbol_count, const hackc_tensor* tensors, size_t tensor_count,
                        void* workspace, uint64_t workspace_bytes, void* stream);

// The same launches as a CUDA graph over the same addresses; it must be destroyed before the
// program.
HACKC_API int hackc_graph_capture(hackc_program* program, const char* entry,
                                  const hackc_symbol* symbols, size_t symbol_count,
                                  const hackc_tensor* tensors, size_t tensor_count, void* workspace,
                                  uint64_t workspace_bytes, hackc_graph** graph);
// Only the launches of the named kernels, for measurements of one kernel. HACKC_NOT_FOUND for an
// unknown name.
HACKC_API int hackc_graph_capture_kernels(hackc_program* program, const char* entry,
                                          const hackc_symbol* symbols, size_t symbol_count,
                                          const hackc_tensor* tensors, size_t tensor_count,
                                          void* workspace, uint64_t workspace_bytes,
                                          const char* const* kernels, size_t kernel_count,
                                          hackc_graph** graph);
// Argument `argument` of launch `launch` of the entry point, counting those that the graph leaves
// out. HACKC_OUT_OF_RANGE when there is no such argument (0: no such launch).
HACKC_API int hackc_graph_argument(const hackc_graph* graph, size_t launch, size_t argument,
                                   hackc_argument_info* info);
// Other symbol values for the launches from here on, such as the next "past" (the lengths of
// sequences, input past_lengths, are the caller's to change on the stream).
// HACKC_FAILED_PRECONDITION where shapes or grids would change.
HACKC_API int hackc_graph_set_symbols(hackc_graph* graph, const hackc_symbol* symbols,
                                      size_t symbol_count);
HACKC_API int hackc_graph_launch(hackc_graph* graph, void* stream);
HACKC_API void hackc_graph_destroy(hackc_graph* graph);

// "0.1.0"
HACKC_API const char* hackc_version(void);
// Reason of the calling thread's last failure; "" before any.
HACKC_API const char* hackc_last_error(void);

#ifdef __cplusplus
}
#endif
