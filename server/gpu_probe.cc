// SPDX-License-Identifier: MIT
#include "server/gpu_probe.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hackc::server {
namespace {

// The few driver functions and numbers that are needed; they are part of the driver's stable ABI.
constexpr int kCapabilityMajor = 75;
constexpr int kCapabilityMinor = 76;

template <typename Function>
bool Load(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

// The kernel module's, such as "580.95.05", else that of the CUDA interface, such as "13.0".
std::string DriverVersion(void* library) {
  std::string version;
  if (std::ifstream("/sys/module/nvidia/version") >> version) return version;
  int (*get_version)(int*);
  int number = 0;
  if (!Load(library, "cuDriverGetVersion", &get_version) || get_version(&number) != 0) return "";
  return absl::StrCat(number / 1000, ".", number % 1000 / 10);
}

// "ok\nNAME\nARCH\nDRIVER", "none\nREASON" or "count\nREASON".
std::string Ask(int index) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) return "none\nno CUDA driver (libcuda.so.1 cannot be loaded)";
  int (*init)(unsigned);
  int (*get_count)(int*);
  int (*get_device)(int*, int);
  int (*get_name)(char*, int, int);
  int (*get_attribute)(int*, int, int);
  if (!Load(library, "cuInit", &init) || !Load(library, "cuDeviceGetCount", &get_count) ||
      !Load(library, "cuDeviceGet", &get_device) || !Load(library, "cuDeviceGetName", &get_name) ||
      !Load(library, "cuDeviceGetAttribute", &get_attribute)) {
    return "none\nlibcuda.so.1 lacks driver functions";
  }
  if (const int error = init(0); error != 0) {
    return absl::StrCat("none\nthe CUDA driver does not start (cuInit gives error ", error, ")");
  }
  int count = 0, device = 0, major = 0, minor = 0;
  char name[256] = "";
  if (get_count(&count) != 0) return "none\nthe CUDA driver cannot count its devices";
  if (index >= count) return absl::StrCat("count\nthis machine has ", count, " GPU(s)");
  if (get_device(&device, index) != 0 || get_name(name, sizeof(name), device) != 0 ||
      get_attribute(&major, kCapabilityMajor, device) != 0 ||
      get_attribute(&minor, kCapabilityMinor, device) != 0) {
    return absl::StrCat("none\nthe CUDA driver cannot describe device ", index);
  }
  return absl::StrCat("ok\n", name, "\n", ArchOfCapability(major, minor), "\n",
                      DriverVersion(library));
}

}  // namespace

std::string ArchOfCapability(int major, int minor) {
  // From 9.0 on, matrix and copy instructions exist only in the arch-specific variant.
  return absl::StrCat("sm_", major, minor, major >= 9 ? "a" : "");
}

absl::StatusOr<GpuInfo> ProbeGpu(int index) {
  int ends[2];
  if (pipe(ends) != 0) return absl::InternalError("pipe failed");
  const pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    return absl::InternalError("fork failed");
  }
  if (child == 0) {
    const std::string answer = Ask(index);
    const bool written =
        write(ends[1], answer.data(), answer.size()) == static_cast<ssize_t>(answer.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string answer;
  char buffer[512];
  ssize_t got;
  while ((got = read(ends[0], buffer, sizeof(buffer))) > 0 || (got < 0 && errno == EINTR)) {
    if (got > 0) answer.append(buffer, got);
  }
  close(ends[0]);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  const std::vector<std::string> lines = absl::StrSplit(answer, '\n');
  if (lines.size() == 4 && lines[0] == "ok") return GpuInfo{lines[1], lines[2], lines[3]};
  const std::string reason = lines.size() == 2 ? lines[1] : "the CUDA driver crashed";
  const std::string message = absl::StrCat("GPU ", index, ": ", reason);
  if (lines[0] == "count") return absl::NotFoundError(message);
  return absl::FailedPreconditionError(message);
}

}  // namespace hackc::server
