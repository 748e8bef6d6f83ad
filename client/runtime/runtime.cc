// SPDX-License-Identifier: MIT
#include "client/runtime/runtime.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/runtime/module_loader.h"
#include "client/runtime/program_check.h"
#include "compiler/support/status_macros.h"

namespace hackc::client {
namespace {

// Launch lists kept for symbol values seen before; one of 300 launches takes some 100 KB.
constexpr size_t kReadyLists = 16;

std::string SomeNames(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  size_t shown = std::min(names.size(), kShown);
  return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + shown, ", "),
                      names.size() > kShown ? ", ..." : "");
}

}  // namespace

RuntimeGraph::~RuntimeGraph() {
  ScopedContext scope(runtime_.driver_, runtime_.context_);
  if (executable_ != nullptr) runtime_.driver_.GraphExecDestroy(executable_);
  if (graph_ != nullptr) runtime_.driver_.GraphDestroy(graph_);
}

absl::Status RuntimeGraph::Launch(CUstream stream) {
  ScopedContext scope(runtime_.driver_, runtime_.context_);
  HACKC_RETURN_IF_ERROR(scope.status());
  return runtime_.driver_.Check(runtime_.driver_.GraphLaunch(executable_, stream), "cuGraphLaunch");
}

absl::Status RuntimeGraph::SetSymbols(const SymbolValues& symbols) {
  HACKC_ASSIGN_OR_RETURN(int64_t workspace, runtime_.WorkspaceBytes(entry_.name(), symbols));
  HACKC_ASSIGN_OR_RETURN(bool taken, launches_.TakeSymbols(symbols, workspace));
  if (!taken) {
    return absl::FailedPreconditionError(
        "these symbol values change shapes or grids; a graph of their own is needed");
  }
  ScopedContext scope(runtime_.driver_, runtime_.context_);
  HACKC_RETURN_IF_ERROR(scope.status());
  return launches_.UpdateNumbers(executable_, nodes_);
}

absl::StatusOr<std::unique_ptr<Runtime>> Runtime::Load(const CudaDriver& driver, ProgramFiles files,
                                                       int device, DeviceAllocator allocator) {
  HACKC_RETURN_IF_ERROR(CheckProgram(files.program));
  if (files.cubins.size() != static_cast<size_t>(files.program.kernels_size())) {
    return absl::InvalidArgumentError(absl::StrCat("program has ", files.program.kernels_size(),
                                                   " kernels, got ", files.cubins.size(),
                                                   " cubins"));
  }
  std::unique_ptr<Runtime> runtime(new Runtime(driver, std::move(files), std::move(allocator)));
  HACKC_RETURN_IF_ERROR(driver.Check(driver.DeviceGet(&runtime->device_, device),
                                     absl::StrCat("cuDeviceGet of device ", device)));
  HACKC_RETURN_IF_ERROR(
      driver.Check(driver.PrimaryContextRetain(&runtime->context_, runtime->device_),
                   "cuDevicePrimaryCtxRetain"));
  ScopedContext scope(driver, runtime->context_);
  HACKC_RETURN_IF_ERROR(scope.status());
  HACKC_RETURN_IF_ERROR(CheckDevice(driver, runtime->program(), runtime->device_));
  HACKC_RETURN_IF_ERROR(
      LoadModules(driver, runtime->files_, &runtime->modules_, &runtime->functions_));
  HACKC_ASSIGN_OR_RETURN(
      ResidentTensors tensors,
      ResidentTensors::Create(driver, &runtime->files_.program, &runtime->allocator_));
  for (const v1::EntryPoint& entry : runtime->program().entry_points()) {
    runtime->caller_tensors_[&entry] = runtime->CallerTensors(entry);
  }
  runtime->caller_slots_ = CallerSlots(runtime->program()).back();
  runtime->tensors_ = std::make_unique<ResidentTensors>(std::move(tensors));
  // The driver has its own copy of the code.
  runtime->files_.cubins.clear();
  return runtime;
}

Runtime::~Runtime() {
  if (context_ == nullptr) return;
  Unload();
  driver_.PrimaryContextRelease(device_);
}

void Runtime::Unload() {
  ScopedContext scope(driver_, context_);
  ready_.clear();
  tensors_.reset();
  for (CUmodule module : modules_) driver_.ModuleUnload(module);
  modules_.clear();
}

absl::Status Runtime::BindWeight(const std::string& name, const WeightTensor& tensor) {
  if (prepared_) {
    return absl::FailedPreconditionError(
        absl::StrCat("weight ", name, ": bound after prepare, which has read the weights"));
  }
  ScopedContext scope(driver_, context_);
  HACKC_RETURN_IF_ERROR(scope.status());
  return tensors_->Bind(name, tensor);
}

absl::Status Runtime::Prepare(CUstream stream) {
  if (prepared_) return absl::FailedPreconditionError("prepare: already done");
  if (std::vector<std::string> missing = MissingWeights(); !missing.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("prepare: ", missing.size(), " weights are not bound: ", SomeNames(missing)));
  }
  ScopedContext scope(driver_, context_);
  HACKC_RETURN_IF_ERROR(scope.status());
  HACKC_RETURN_IF_ERROR(tensors_->AllocatePrepared(stream));
  HACKC_ASSIGN_OR_RETURN(LaunchList launches,
                         LaunchList::Build(driver_, program(), functions_, *tensors_,
                                           program().prepare(), {}, /*workspace_bytes=*/0));
  HACKC_RETURN_IF_ERROR(launches.Launch({}, stream));
  HACKC_RETURN_IF_ERROR(
      driver_.Check(driver_.StreamSynchronize(stream), "prepare: cuStreamSynchronize"));
  tensors_->ReleaseUploadsUnusedBy(program().entry_points());
  prepared_ = true;
  return absl::OkStatus();
}

std::vector<Runtime::CallerTensor> Runtime::CallerTensors(const v1::EntryPoint& entry) const {
  // Inputs and outputs as declared, used or not; states as the launches use them.
  std::vector<uint32_t> ids(entry.inputs().begin(), entry.inputs().end());
  auto add = [&](uint32_t id) {
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  };
  for (uint32_t id : entry.outputs()) add(id);
  for (const FlatLaunch& flat : Flatten(entry.steps())) {
    for (const v1::BufferRef& ref : flat.launch->args()) {
      if (IsCallerBound(program().buffers(ref.buffer()))) add(ref.buffer());
    }
  }
  std::vector<int> slots = CallerSlots(program());
  std::vector<CallerTensor> tensors;
  for (uint32_t id : ids) {
    const v1::Buffer& buffer = program().buffers(id);
    for (uint32_t i = 0; i < Repetitions(buffer); ++i) {
      tensors.push_back({TensorName(buffer, i), id, slots[id] + static_cast<int>(i)});
    }
  }
  return tensors;
}

absl::StatusOr<const v1::EntryPoint*> Runtime::FindEntry(const std::string& name,
                                                         const SymbolValues& symbols) const {
  absl::Status refused;
  std::set<std::string> known;
  std::vector<std::string> ranges;
  for (const v1::EntryPoint& entry : program().entry_points()) {
    known.insert(entry.name());
    if (entry.name() != name) continue;
    refused = CheckSymbols(entry, symbols);
    if (refused.ok()) return &entry;
    std::vector<std::string> own;
    for (const v1::Symbol& symbol : entry.symbols()) {
      own.push_back(absl::StrCat(symbol.name(), " ", symbol.min(), "..", symbol.max()));
    }
    ranges.push_back(absl::StrJoin(own, ", "));
  }
  if (ranges.size() > 1) {
    return absl::Status(refused.code(),
                        absl::StrCat(refused.message(), "; ", name, " is compiled for ",
                                     absl::StrJoin(ranges, "; for ")));
  }
  if (!refused.ok()) return refused;
  return absl::NotFoundError(absl::StrCat(
      "entry point '", name, "' does not exist; the program has ", absl::StrJoin(known, ", ")));
}

absl::Status Runtime::CheckSymbols(const v1::EntryPoint& entry, const SymbolValues& symbols) const {
  const bool own = entry.symbols_size() > 0;
  for (const v1::Symbol& symbol : own ? entry.symbols() : program().symbols()) {
    auto found = symbols.find(symbol.name());
    if (found == symbols.end()) {
      return absl::InvalidArgumentError(absl::StrCat("symbol ", symbol.name(), " has no value"));
    }
    if (found->second < symbol.min() || found->second > symbol.max()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "symbol ", symbol.name(), " = ", found->second, ", ",
          own ? absl::StrCat("the entry point ", entry.name()) : std::string("the program"),
          " is compiled for ", symbol.min(), "..", symbol.max()));
    }
  }
  if (symbols.size() == static_cast<size_t>(program().symbols_size())) return absl::OkStatus();
  std::vector<std::string> known;
  for (const v1::Symbol& symbol : program().symbols()) known.push_back(symbol.name());
  return absl::InvalidArgumentError(absl::StrCat(
      "got a value for an unknown symbol; the program has ", absl::StrJoin(known, ", ")));
}

absl::StatusOr<int64_t> Runtime::WorkspaceBytes(const std::string& entry,
                                                const SymbolValues& symbols) const {
  HACKC_ASSIGN_OR_RETURN(const v1::EntryPoint* found, FindEntry(entry, symbols));
  HACKC_ASSIGN_OR_RETURN(int64_t bytes, Evaluate(found->workspace_bytes(), symbols));
  if (bytes < 0) return absl::OutOfRangeError("workspace: negative size");
  return bytes;
}

absl::StatusOr<std::vector<TensorInfo>> Runtime::Tensors(const std::string& entry,
                                                         const SymbolValues& symbols) const {
  HACKC_ASSIGN_OR_RETURN(const v1::EntryPoint* found, FindEntry(entry, symbols));
  std::vector<TensorInfo> infos;
  for (const CallerTensor& tensor : caller_tensors_.at(found)) {
    const v1::Buffer& buffer = program().buffers(tensor.buffer);
    TensorInfo info{tensor.name, buffer.kind(), buffer.dtype(), {}, 0};
    HACKC_ASSIGN_OR_RETURN(info.shape, EvaluateShape(buffer, symbols));
    HACKC_ASSIGN_OR_RETURN(info.bytes, EvaluateBytes(buffer, symbols));
    infos.push_back(std::move(info));
  }
  return infos;
}

absl::StatusOr<CallerAddresses> Runtime::Addresses(const v1::EntryPoint& entry,
                                                   const Call& call) const {
  CallerAddresses addresses;
  addresses.tensors.assign(caller_slots_, 0);
  const std::vector<CallerTensor>& wanted = caller_tensors_.at(&entry);
  for (const CallerTensor& tensor : wanted) {
    auto found = call.tensors.find(tensor.name);
    if (found == call.tensors.end()) {
      return absl::InvalidArgumentError(absl::StrCat(tensor.name, ": not given"));
    }
    HACKC_ASSIGN_OR_RETURN(int64_t bytes,
                           EvaluateBytes(program().buffers(tensor.buffer), call.symbols));
    if (found->second.bytes != 0 && found->second.bytes != bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(tensor.name, ": expected ", bytes, " bytes, got ", found->second.bytes));
    }
    addresses.tensors[tensor.slot] = found->second.address;
  }
  for (const auto& [name, tensor] : call.tensors) {
    if (call.tensors.size() == wanted.size()) break;
    bool known = std::any_of(wanted.begin(), wanted.end(),
                             [&name = name](const CallerTensor& w) { return w.name == name; });
    if (!known) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": ", entry.name(), " has no tensor of this name"));
    }
  }
  HACKC_ASSIGN_OR_RETURN(int64_t workspace, WorkspaceBytes(entry.name(), call.symbols));
  if (call.workspace.bytes < workspace || call.workspace.address % 256 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("workspace: expected at least ", workspace, " bytes aligned to 256, got ",
                     call.workspace.bytes, " at address ", absl::Hex(call.workspace.address)));
  }
  addresses.workspace = call.workspace.address;
  return addresses;
}

absl::StatusOr<LaunchList*> Runtime::Launches(const v1::EntryPoint& entry,
                                              const SymbolValues& symbols) {
  auto found = std::find_if(ready_.begin(), ready_.end(), [&](const Ready& ready) {
    return ready.entry == &entry && ready.symbols == symbols;
  });
  if (found != ready_.end()) {
    ready_.splice(ready_.begin(), ready_, found);
    return &ready_.front().launches;
  }
  HACKC_ASSIGN_OR_RETURN(int64_t workspace, WorkspaceBytes(entry.name(), symbols));
  for (auto ready = ready_.begin(); ready != ready_.end(); ++ready) {
    if (ready->entry != &entry) continue;
    HACKC_ASSIGN_OR_RETURN(bool taken, ready->launches.TakeSymbols(symbols, workspace));
    if (!taken) continue;
    ready->symbols = symbols;
    ready_.splice(ready_.begin(), ready_, ready);
    return &ready_.front().launches;
  }
  HACKC_ASSIGN_OR_RETURN(LaunchList launches,
                         LaunchList::Build(driver_, program(), functions_, *tensors_, entry.steps(),
                                           symbols, workspace));
  ready_.push_front({&entry, symbols, std::move(launches)});
  if (ready_.size() > kReadyLists) ready_.pop_back();
  return &ready_.front().launches;
}

absl::Status Runtime::Run(const Call& call, CUstream stream) {
  HACKC_ASSIGN_OR_RETURN(const v1::EntryPoint* entry, FindEntry(call.entry, call.symbols));
  if (!prepared_) return absl::FailedPreconditionError("run: call prepare first");
  HACKC_ASSIGN_OR_RETURN(CallerAddresses addresses, Addresses(*entry, call));
  HACKC_ASSIGN_OR_RETURN(LaunchList * launches, Launches(*entry, call.symbols));
  ScopedContext scope(driver_, context_);
  HACKC_RETURN_IF_ERROR(scope.status());
  return launches->Launch(addresses, stream);
}

absl::StatusOr<std::unique_ptr<RuntimeGraph>> Runtime::Capture(
    const Call& call, const std::set<std::string>& kernels) {
  HACKC_ASSIGN_OR_RETURN(const v1::EntryPoint* entry, FindEntry(call.entry, call.symbols));
  if (!prepared_) return absl::FailedPreconditionError("capture: call prepare first");
  HACKC_ASSIGN_OR_RETURN(CallerAddresses addresses, Addresses(*entry, call));
  HACKC_ASSIGN_OR_RETURN(int64_t workspace, WorkspaceBytes(entry->name(), call.symbols));
  HACKC_ASSIGN_OR_RETURN(LaunchList launches,
                         LaunchList::Build(driver_, program(), functions_, *tensors_,
                                           entry->steps(), call.symbols, workspace));
  std::set<std::string> unknown = kernels;
  for (size_t i = 0; i < launches.size(); ++i) unknown.erase(launches.KernelName(i));
  if (!unknown.empty()) {
    return absl::NotFoundError(
        absl::StrCat(entry->name(), " launches no kernel ", *unknown.begin()));
  }
  ScopedContext scope(driver_, context_);
  HACKC_RETURN_IF_ERROR(scope.status());
  std::unique_ptr<RuntimeGraph> captured(new RuntimeGraph(*this, *entry, std::move(launches)));
  CUgraph graph = nullptr;
  HACKC_RETURN_IF_ERROR(driver_.Check(driver_.GraphCreate(&graph, 0), "cuGraphCreate"));
  absl::Status status = captured->launches_.AddTo(graph, addresses, kernels, &captured->nodes_);
  if (status.ok()) {
    status = driver_.Check(driver_.GraphInstantiate(&captured->executable_, graph, 0),
                           "cuGraphInstantiate");
  }
  // The nodes' handles stay good for the executable's updates as long as the graph is there.
  captured->graph_ = graph;
  HACKC_RETURN_IF_ERROR(status);
  return captured;
}

}  // namespace hackc::client
