// SPDX-License-Identifier: MIT
#include "compiler/passes/plugin.h"

#include <dlfcn.h>

#include <cstdint>
#include <fstream>
#include <iterator>

#include "compiler/support/cat.h"

namespace hackc::passes {
namespace {

std::string& Fingerprints() {
  static auto* text = new std::string;
  return *text;
}

// FNV-1a of the library's bytes: two builds of a plug-in differ in it.
uint64_t HashOfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  uint64_t hash = 0xcbf29ce484222325;
  for (std::istreambuf_iterator<char> byte(file), end; byte != end; ++byte) {
    hash = (hash ^ static_cast<uint8_t>(*byte)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace

absl::Status LoadPassPlugin(const std::string& path) {
  void* library =
      dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays: its passes are in the tables
  void* entry = library == nullptr ? nullptr : dlsym(library, "hackc_pass_plugin");
  if (entry == nullptr) {
    return absl::FailedPreconditionError(Cat("pass plug-in ", path, ": ", dlerror()));
  }
  reinterpret_cast<void (*)(PassTables&)>(entry)(EditablePasses());
  Fingerprints() += Cat(HashOfFile(path), " ");
  return absl::OkStatus();
}

std::string PluginFingerprint() { return Fingerprints(); }

}  // namespace hackc::passes
