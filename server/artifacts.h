// SPDX-License-Identifier: MIT
// Compiled kernels and programs as the store keeps them. A find that does not get every part is a
// miss: the caller builds again and the put makes it whole. A put that fails is logged and counted,
// and changes nothing for whoever asked.
//
//   std::optional<StoredProgram> program = artifacts.FindProgram(key, /*with_ir=*/false);
//
// Thread safety: all functions may be called from any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/store.h"
#include "compiler/compile.h"
#include "hackc/v1/program.pb.h"
#include "hackc/v1/stored.pb.h"
#include "hackc/v1/worker.pb.h"
#include "server/metrics.h"

namespace hackc::server {

struct StoredKernel {
  std::string digest;  // of the cubin
  std::shared_ptr<const std::string> cubin;
  v1::stored::Kernel facts;
};

struct StoredProgram {
  v1::Program program;
  std::string bytes;                                       // its deterministic serialisation
  std::string digest;                                      // of `bytes`
  std::vector<std::shared_ptr<const std::string>> cubins;  // the program's kernels, in order
  v1::stored::Ir ir;
};

class Artifacts {
 public:
  Artifacts(std::shared_ptr<cache::Store> store, Metrics& metrics)
      : store_(std::move(store)), metrics_(metrics) {}

  std::optional<StoredKernel> FindKernel(const cache::Key& key);
  // Gives what the store has from now on, which is another's result if that came first.
  StoredKernel PutKernel(const cache::Key& key, const std::string& name,
                         v1::worker::CompiledKernel compiled);

  std::optional<StoredProgram> FindProgram(const cache::Key& key, bool with_ir);
  void PutProgram(const cache::Key& key, const std::string& name, const StoredProgram& program);

  // The timing report of a program on a device, kept with `device` as a part of its key; empty:
  // there is none.
  std::string FindTiming(const std::string& program_digest, const std::string& device);
  void PutTiming(const std::string& program_digest, const std::string& device,
                 const std::string& json);

  // Whether all kernels of a program matched their references on a device.
  bool WasChecked(const std::string& program_digest, const std::string& device);
  void PutChecked(const std::string& program_digest, const std::string& device, bool checked);

  // The key is a miss from now on.
  void Forget(std::string_view kind, const cache::Digest& key);

  cache::Store& store() const { return *store_; }

 private:
  const std::shared_ptr<cache::Store> store_;
  Metrics& metrics_;
};

// The key of an action: the compiler's fields and the version of the NVRTC that turns them into
// code.
cache::Key MakeKey(std::string_view kind, const KeyFields& fields,
                   const std::string& nvrtc_version);

}  // namespace hackc::server
