// SPDX-License-Identifier: MIT
// The compile server without gRPC: requests in, streams of events out. The daemon puts a thin
// service on top of it; `hackc-client --local` calls it in its own process.
//
//   ASSIGN(std::unique_ptr<Engine> engine, OpenLocalEngine({.cache_dir = dir}));  // server/local.h
//   absl::Status status =
//       engine->Compile(request, [](const v1::CompileEvent& event) { return true; });
//
// The way of a request: config -> front end -> key. A key that is stored is answered from the store
// and runs no pass. A key that is being built is joined. Else one job is queued for all who ask: a
// worker plans the program, each kernel is looked up by its own key, the misses are compiled over
// all workers, stored, and streamed as they get ready.
//
// With a bench process kernels and program go out, and into the store, once all of its kernels have
// matched their references on the GPU; one that does not ends the stream with INTERNAL. The report,
// the stream's last event, waits for the program's times: from the store, else measured on a thread
// of their own, so that no compile waits for a measurement. When too many programs wait for theirs,
// the report says so instead.
//
// Thread safety: all functions may be called from any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hackc/v1/compiler.pb.h"
#include "server/event_stream.h"
#include "server/gpu_probe.h"

namespace hackc::cache {
class Store;
}

namespace hackc::server {

class CompilerBackend;
class WorkerPool;
struct Metrics;

struct EngineOptions {
  std::string default_arch = "sm_90a";  // when a request names none
  GpuInfo gpu;                          // empty without one
  std::shared_ptr<WorkerPool> bench;    // one bench process on `gpu`; null: no times
  size_t bench_queue_limit = 16;        // programs that wait to be timed
  size_t queue_limit = 64;              // jobs that wait; more get RESOURCE_EXHAUSTED
  size_t stream_limit = 1024;           // answers open at a time; more get RESOURCE_EXHAUSTED
};

class Engine {
 public:
  // Asks a worker for the toolchain: FAILED_PRECONDITION when there is no NVRTC.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(EngineOptions options,
                                                        std::shared_ptr<cache::Store> store,
                                                        std::shared_ptr<CompilerBackend> backend,
                                                        std::shared_ptr<WorkerPool> pool);
  ~Engine();  // cancels what still runs
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Never blocks on a build and never returns null; errors come as the stream's status.
  std::shared_ptr<EventStream> Submit(const v1::CompileRequest& request);

  // The same, blocking: `sink` gets each event on the calling thread; false from it cancels.
  using EventSink = std::function<bool(const v1::CompileEvent&)>;
  absl::Status Compile(const v1::CompileRequest& request, const EventSink& sink);

  // One blob, checked against its digest. NOT_FOUND, INVALID_ARGUMENT for what is no digest.
  absl::StatusOr<v1::Blob> Fetch(const std::string& digest);

  // Both block: on a worker, which `cancelled` is asked before, and on the front end.
  absl::StatusOr<v1::ExplainResponse> Explain(const v1::ExplainRequest& request,
                                              std::function<bool()> cancelled = nullptr);
  absl::StatusOr<v1::ExplainKeyResponse> ExplainKey(const v1::ExplainKeyRequest& request);

  v1::StatusResponse Status() const;

  // Runs a blocking call of this class off the caller's thread: among the jobs when it needs a
  // worker, else on the front end's threads. RESOURCE_EXHAUSTED when too many wait, UNAVAILABLE
  // while stopping. The answer takes the task out again; true from it: it will never run.
  using Remover = std::function<bool()>;
  absl::StatusOr<Remover> RunOnJobs(std::function<void()> task);
  absl::StatusOr<Remover> RunOnFront(std::function<void()> task);

  // Held by a call that is answered in parts: until it goes the engine is not idle. UNAVAILABLE
  // while stopping.
  absl::StatusOr<std::shared_ptr<void>> OpenCall();

  // Stop, first phase: new requests get UNAVAILABLE, what runs goes on.
  void StopAccepting();
  // Waits until nothing runs and no stream is open; false at the time limit.
  bool WaitIdle(std::chrono::milliseconds limit);
  // Second phase: ends every stream with UNAVAILABLE and drops all jobs.
  void CancelAll();

  const Metrics& metrics() const;

 private:
  class Impl;
  explicit Engine(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace hackc::server
