// SPDX-License-Identifier: MIT
#include "compiler/toolchain/nvrtc.h"

#include <dlfcn.h>
#include <nvrtc.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/support/status_macros.h"

namespace hackc::toolchain {
namespace {

// The functions used; types come from the header.
struct Library {
  // Converts to a pointer of any type; null where the library has no such function.
  struct Function {
    void* address;
    template <typename F>
    operator F*() const {  // NOLINT: what is assigned says the type
      return reinterpret_cast<F*>(address);
    }
  };
  Function Find(const char* name) {
    void* address = dlsym(handle, name);
    complete &= address != nullptr;
    return {address};
  }

  void* handle = nullptr;
  bool complete = true;
  decltype(&::nvrtcVersion) version = Find("nvrtcVersion");
  decltype(&::nvrtcGetErrorString) error_string = Find("nvrtcGetErrorString");
  decltype(&::nvrtcGetNumSupportedArchs) arch_count = Find("nvrtcGetNumSupportedArchs");
  decltype(&::nvrtcGetSupportedArchs) archs = Find("nvrtcGetSupportedArchs");
  decltype(&::nvrtcCreateProgram) create = Find("nvrtcCreateProgram");
  decltype(&::nvrtcDestroyProgram) destroy = Find("nvrtcDestroyProgram");
  decltype(&::nvrtcCompileProgram) compile = Find("nvrtcCompileProgram");
  decltype(&::nvrtcGetCUBINSize) cubin_size = Find("nvrtcGetCUBINSize");
  decltype(&::nvrtcGetCUBIN) cubin = Find("nvrtcGetCUBIN");
  decltype(&::nvrtcGetProgramLogSize) log_size = Find("nvrtcGetProgramLogSize");
  decltype(&::nvrtcGetProgramLog) log = Find("nvrtcGetProgramLog");
};

std::vector<std::string> Candidates() {
  // "": where the dynamic loader looks.
  std::vector<std::string> folders = {"", HACKC_NVRTC_DIR "/", "/usr/local/cuda/lib64/"};
  if (const char* home = std::getenv("CUDA_HOME"); home != nullptr && *home != '\0') {
    folders.insert(folders.begin(), {absl::StrCat(home, "/lib64/"), absl::StrCat(home, "/lib/")});
  }
  std::vector<std::string> paths;
  for (const std::string& folder : folders) {
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
      paths.push_back(folder + name);
    }
  }
  return paths;
}

// NVRTC opens libnvrtc-builtins by its bare name when it first compiles, which finds nothing when
// both lie in a folder that the dynamic loader does not know, as those of NVIDIA's wheels do.
// Opened here by its path, it is found by that name. Where this fails, NVRTC's own search may still
// succeed.
void OpenBuiltins(const Library& library) {
  int major = 0, minor = 0;
  Dl_info where;
  if (library.version(&major, &minor) != NVRTC_SUCCESS) return;
  if (dladdr(reinterpret_cast<void*>(library.version), &where) == 0) return;
  std::string path = where.dli_fname;
  std::string folder = path.substr(0, path.rfind('/') + 1);
  std::string builtins = absl::StrCat(folder, "libnvrtc-builtins.so.", major, ".", minor);
  dlopen(builtins.c_str(), RTLD_NOW | RTLD_LOCAL);
}

absl::StatusOr<Library> Open() {
  std::vector<std::string> paths = Candidates();
  for (const std::string& path : paths) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) continue;
    Library library{handle};
    if (library.complete) {
      OpenBuiltins(library);
      return library;
    }
    dlclose(handle);
  }
  return absl::FailedPreconditionError(
      absl::StrCat("no NVRTC: set CUDA_HOME or run deploy/install-deps; looked for ",
                   absl::StrJoin(paths, ", ")));
}

const absl::StatusOr<Library>& Loaded() {
  static const auto& library = *new absl::StatusOr<Library>(Open());
  return library;
}

// A program that is destroyed on every way out: NVRTC keeps what is not.
class Program {
 public:
  explicit Program(const Library& library) : library_(library) {}
  ~Program() {
    if (program_ != nullptr) library_.destroy(&program_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  absl::Status Check(nvrtcResult result, const char* what) const {
    if (result == NVRTC_SUCCESS) return absl::OkStatus();
    std::string message = absl::StrCat("NVRTC: ", what, ": ", library_.error_string(result));
    return result == NVRTC_ERROR_OUT_OF_MEMORY ? absl::ResourceExhaustedError(message)
                                               : absl::InternalError(message);
  }

  absl::Status Create(const std::string& text, const std::string& name) {
    return Check(library_.create(&program_, text.c_str(), name.c_str(), 0, nullptr, nullptr),
                 "create");
  }

  nvrtcResult Compile(const std::vector<std::string>& options) {
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    return library_.compile(program_, static_cast<int>(pointers.size()), pointers.data());
  }

  std::string Log() const {
    std::string log = Read(library_.log_size, library_.log, "log").value_or("");
    absl::c_replace(log, '\0', '\n');  // the parts of the log end with NULs
    return log;
  }

  absl::StatusOr<std::string> Bytes() const {
    return Read(library_.cubin_size, library_.cubin, "cubin");
  }

 private:
  absl::StatusOr<std::string> Read(auto size_of, auto read, const char* what) const {
    size_t size = 0;
    HACKC_RETURN_IF_ERROR(Check(size_of(program_, &size), what));
    std::string bytes(size, '\0');
    HACKC_RETURN_IF_ERROR(Check(read(program_, bytes.data()), what));
    return bytes;
  }

  const Library& library_;
  nvrtcProgram program_ = nullptr;
};

// The number before `unit` in ptxas' report: 12 in "12 bytes spill stores".
uint32_t NumberBefore(absl::string_view line, absl::string_view unit) {
  size_t at = line.find(unit);
  if (at == absl::string_view::npos) return 0;
  absl::string_view head = line.substr(0, at);
  head.remove_prefix(head.find_last_not_of("0123456789") + 1);
  uint32_t number = 0;
  return absl::SimpleAtoi(head, &number) ? number : 0;
}

constexpr char kNoCache[] = "--no-cache";

// From 12.9 on NVRTC has a cache, and the option.
bool HasCache(const Library& library) {
  int major = 0, minor = 0;
  return library.version(&major, &minor) == NVRTC_SUCCESS &&
         std::pair(major, minor) >= std::pair(12, 9);
}

// Sorts the log into ptxas' resource report and what else was said. INTERNAL: there is no report,
// as when code came from a cache, so that registers and spills are not known.
absl::Status ReadLog(const std::string& log, Cubin& cubin) {
  for (absl::string_view line : absl::StrSplit(log, '\n', absl::SkipWhitespace())) {
    bool report = line.find("ptxas info") != absl::string_view::npos ||
                  line.find(" spill stores") != absl::string_view::npos;
    if (!report) {
      absl::StrAppend(&cubin.warnings, line, "\n");
      continue;
    }
    cubin.registers = std::max(cubin.registers, NumberBefore(line, " registers"));
    cubin.spill_bytes = std::max(cubin.spill_bytes, NumberBefore(line, " bytes spill stores"));
    cubin.static_shared_bytes =
        std::max(cubin.static_shared_bytes, NumberBefore(line, " bytes smem"));
  }
  if (cubin.registers > 0) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("NVRTC's log does not say how many registers the kernel takes: \"", log, "\""));
}

}  // namespace

std::vector<std::string> Options(const std::string& arch) {
  // -v reports registers and spills in the log. Precompiled headers stay off: parallel compiles
  // would share one file. --minimal leaves out texture types, which no kernel here uses. Without
  // --no-cache code may come from the driver's cache in ~/.nv, and then nothing is reported.
  return {absl::StrCat("--gpu-architecture=", arch), "--std=c++17", "--minimal",
          "--ptxas-options=-v", kNoCache};
}

int CapabilityOf(const std::string& arch) {
  absl::string_view digits = arch;
  if (!absl::ConsumePrefix(&digits, "sm_")) return 0;
  if (!digits.empty() && (digits.back() == 'a' || digits.back() == 'f')) digits.remove_suffix(1);
  unsigned capability = 0;  // no sign is read
  const auto [rest, error] = std::from_chars(digits.begin(), digits.end(), capability);
  return error == std::errc() && rest == digits.end() ? static_cast<int>(capability) : 0;
}

absl::StatusOr<std::string> Version() {
  if (!Loaded().ok()) return Loaded().status();
  int major = 0, minor = 0;
  if (Loaded()->version(&major, &minor) != NVRTC_SUCCESS)
    return absl::InternalError("NVRTC has no version");
  return absl::StrCat(major, ".", minor);
}

absl::StatusOr<std::vector<int>> Capabilities() {
  if (!Loaded().ok()) return Loaded().status();
  int count = 0;
  nvrtcResult result = Loaded()->arch_count(&count);
  std::vector<int> capabilities(static_cast<size_t>(count));
  if (result == NVRTC_SUCCESS) result = Loaded()->archs(capabilities.data());
  if (result != NVRTC_SUCCESS) return absl::InternalError("NVRTC lists no archs");
  return capabilities;
}

absl::StatusOr<Cubin> CompileCubin(const std::string& text, const std::string& entry,
                                   const std::string& arch) {
  const auto start = std::chrono::steady_clock::now();
  HACKC_ASSIGN_OR_RETURN(std::vector<int> capabilities, Capabilities());
  if (!absl::c_linear_search(capabilities, CapabilityOf(arch))) {
    return absl::UnimplementedError(absl::StrCat("NVRTC ", Version().value_or("?"),
                                                 " has no arch \"", arch, "\"; it has sm_",
                                                 absl::StrJoin(capabilities, ", sm_")));
  }
  // A name of its own for each text, the same at each compile of it.
  std::string name =
      absl::StrCat(entry, "_", absl::Hex(std::hash<std::string>{}(text), absl::kZeroPad16), ".cu");
  Program program(*Loaded());
  HACKC_RETURN_IF_ERROR(program.Create(text, name));
  std::vector<std::string> options = Options(arch);
  if (!HasCache(*Loaded())) std::erase(options, kNoCache);
  nvrtcResult result = program.Compile(options);
  if (result != NVRTC_SUCCESS) {
    absl::Status status = program.Check(result, absl::StrCat(entry, " for ", arch).c_str());
    return absl::Status(status.code(), absl::StrCat(status.message(), "\n", program.Log()));
  }
  Cubin cubin;
  HACKC_RETURN_IF_ERROR(ReadLog(program.Log(), cubin));
  HACKC_ASSIGN_OR_RETURN(cubin.bytes, program.Bytes());
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  cubin.milliseconds = took.count();
  return cubin;
}

}  // namespace hackc::toolchain
