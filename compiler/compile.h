// SPDX-License-Identifier: MIT
// The one header of the compiler that the server sees: a request becomes a plan (the program and
// the CUDA text of every kernel in it), and a kernel's text becomes a cubin. The two are apart so
// that whoever owns a cache can skip either, and whoever owns worker processes can spread kernels
// over them.
//
//   ASSIGN(key_fields, ProgramKeyFields(request));            // milliseconds: front end only
//   ASSIGN(plan, PlanProgram(request));              // all passes, no NVRTC
//   for (const KernelSource& k : plan.kernels) ASSIGN(cubin, CompileKernel(k));
//
// Everything a caller can cause comes back as absl::Status: INVALID_ARGUMENT with the path of the
// field, what was expected and what was got; FAILED_PRECONDITION where no schedule of a kernel fits
// the target, with the kernel and why. INTERNAL may carry IR from which hackc-opt sees it
// again (support/replay.h); without it, the call itself is what to repeat.
// Thread safety: all functions may be called from any thread; they share no mutable state. Passes
// recurse to a depth that fits in 8 MiB of stack.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/frontend/shapes.h"
#include "compiler/program/program.h"
#include "compiler/toolchain/nvrtc.h"

namespace hackc {

struct CompileRequest : frontend::Shapes {
  std::string name;         // for people; not part of any key
  std::string config_json;  // Hugging Face config.json, old or transformers-5 keys
  program::DType dtype = program::DType::kUnspecified;  // unspecified: the config's, else bfloat16
  std::string arch = "sm_90a";
};

using KeyFields = std::vector<std::pair<std::string, std::string>>;

struct StageTime {
  std::string stage;
  double milliseconds = 0;
};

// One kernel before NVRTC. `key_fields` names all that its cubin depends on except the NVRTC
// version.
struct KernelSource {
  program::Kernel kernel;  // contract; digest, registers, spills, cubin_bytes still empty
  std::string cuda;
  KeyFields key_fields;
  std::map<std::string, std::string> ir;  // "loop", "tile", "kernel", "cuda" -> text
  std::vector<StageTime> times;
};

struct Plan {
  program::Program program;  // program.kernels[i] belongs to kernels[i]
  std::vector<KernelSource> kernels;
  std::string graph_text;
  std::string tensor_text;
  std::vector<StageTime> times;
};

using CompiledKernel = toolchain::Cubin;

// Fields that decide a program: canonical Graph IR text, shape ranges, arch, code generation
// version. The NVRTC version is added by the caller (see NvrtcVersion). Runs the front end: errors
// are the description's errors.
absl::StatusOr<KeyFields> ProgramKeyFields(const CompileRequest& request);

// Runs every pass. The program has the entry point "prefill", up to three times for ranges of seq
// (to 128, to 1024, longer), and, when past.max > 0, "decode" for seq 1..1, up to four times for
// ranges of batch, all over the same weights and key/value cache. Deterministic: the same request
// gives the same plan, byte for byte.
absl::StatusOr<Plan> PlanProgram(const CompileRequest& request);
// The same from Graph IR: what follows the front end.
absl::StatusOr<Plan> PlanGraph(const std::string& graph_text, const std::string& arch);

// NVRTC on one kernel. INTERNAL with the compiler's log when the text does not compile,
// UNIMPLEMENTED naming the archs that this NVRTC has when it lacks the kernel's,
// FAILED_PRECONDITION when no NVRTC is found (the message says where it was looked for).
absl::StatusOr<CompiledKernel> CompileKernel(const KernelSource& source);

// What the measured results of a kernel are held against: a kernel with the same parameters, made
// from the same Loop IR with no schedule and none of the passes below, and what one must know to
// run both on made-up data.
struct Reference {
  KernelSource source;
  std::vector<program::BufferUse> buffers;  // one for each buffer parameter, in order
  program::Rounding rounding;
};
// `loop_text`: a KernelSource's ir["loop"]. INVALID_ARGUMENT when it is no Loop IR.
absl::StatusOr<Reference> ReferenceKernel(const std::string& loop_text, const std::string& arch);

// Rates of the part that stands for an arch in the target table, from its data sheet.
struct Rates {
  double bytes_per_second = 0;
  double fma_operations_per_second = 0;     // float32 outside the matrix units
  double matrix_operations_per_second = 0;  // dense bfloat16
};
absl::StatusOr<Rates> TargetRates(const std::string& arch);

// Adds the passes of a shared library (passes/plugin.h). Before the first compile.
absl::Status LoadPassPlugin(const std::string& path);

// "13.0"; FAILED_PRECONDITION when NVRTC cannot be loaded.
absl::StatusOr<std::string> NvrtcVersion();

// Archs that both this compiler's target table and the loaded NVRTC know, such as "sm_90a".
absl::StatusOr<std::vector<std::string>> SupportedArchs();

}  // namespace hackc
