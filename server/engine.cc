// SPDX-License-Identifier: MIT
#include "server/engine.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/support/status_macros.h"
#include "server/compile_job.h"
#include "server/convert.h"
#include "server/event_log.h"
#include "server/explain.h"
#include "server/job_queue.h"
#include "server/kernel_builder.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/milliseconds.h"
#include "server/program_timer.h"
#include "server/worker_pool.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace hackc::server {
namespace {

constexpr int kFrontThreads = 2;
// So many answers open at once leave memory behind that is worth giving back at their end.
constexpr size_t kManyStreams = 8;

absl::Status Stopping() { return absl::UnavailableError("the server is stopping"); }

uint64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Gives back what a build needed, so that an idle server stays small.
void TrimHeap() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace

class Engine::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(EngineOptions options, std::shared_ptr<cache::Store> store,
       std::shared_ptr<CompilerBackend> backend, std::shared_ptr<WorkerPool> pool,
       v1::worker::Toolchain toolchain)
      : options_(std::move(options)),
        backend_(std::move(backend)),
        pool_(std::move(pool)),
        toolchain_(std::move(toolchain)),
        artifacts_(std::move(store), metrics_),
        kernels_(artifacts_, *pool_, metrics_),
        context_{artifacts_, kernels_, *pool_, metrics_, toolchain_.nvrtc_version(),
                 Timer(),    Device()},
        jobs_queue_(std::in_place, "compile", pool_->size(), options_.queue_limit),
        // Requests whose key is not known yet, a few milliseconds of front end each: their number
        // is bounded as streams, and a burst of hits must not be refused.
        front_queue_(std::in_place, "request", kFrontThreads, options_.stream_limit) {
    if (options_.bench) bench_queue_.emplace("timing", 1, options_.bench_queue_limit);
  }

  std::shared_ptr<EventStream> Submit(const v1::CompileRequest& request);
  absl::StatusOr<v1::worker::PlanCall> MakeCall(const v1::ModelDescription& model,
                                                const v1::Target& target) const;
  absl::StatusOr<cache::Key> ProgramKey(const v1::worker::PlanCall& call);
  v1::StatusResponse Status() const;
  bool Idle() const;
  void CancelAll();
  absl::StatusOr<Remover> RunOn(JobQueue& queue, std::function<void()> task) {
    if (stopping_) return Stopping();
    HACKC_ASSIGN_OR_RETURN(const uint64_t id, queue.Push(std::move(task)));
    return Remover([&queue, id] { return queue.Remove(id); });
  }
  // Ends the threads. Last: nothing else is called after it.
  void Shutdown() {
    CancelAll();
    front_queue_.reset();
    jobs_queue_.reset();
    bench_queue_.reset();
  }

 private:
  friend class Engine;

  // A build that is queued or runs, and how many wait for it.
  struct Running {
    std::shared_ptr<CompileJob> job;
    uint64_t queue_id = 0;
    int waiters = 0;
    bool shared = false;  // more than one asked: then it is finished even if all of them leave
  };
  // What the readers of one stored program share, as long as there are any; with its IR or without.
  using ServedKey = std::pair<cache::Digest, bool>;
  using RunningMap = std::map<cache::Digest, std::shared_ptr<Running>>;

  void Resolve(const std::shared_ptr<LogStream>& stream, const v1::CompileRequest& request);
  void Release(std::shared_ptr<LogStream> stream);  // its reader has gone
  bool Join(const cache::Digest& key, LogStream& stream);
  std::shared_ptr<EventLog> FromStore(const cache::Key& key, bool with_ir);
  std::optional<TimerParts> Timer();
  void StartJob(std::shared_ptr<CompileJob> job, LogStream& stream);
  void Detach(const std::shared_ptr<Running>& running);
  void RunJob(const std::shared_ptr<Running>& running);
  void TimeJob(const std::shared_ptr<Running>& running);
  void EndJob(const std::shared_ptr<Running>& running, absl::Status status);
  // Times of a program that are stored; empty with a GPU: they are still to be measured.
  std::optional<std::string> StoredTiming(const StoredProgram& program);
  std::string Device() const;
  void Forget(const Running& running);

  const EngineOptions options_;
  const std::shared_ptr<CompilerBackend> backend_;
  const std::shared_ptr<WorkerPool> pool_;
  const v1::worker::Toolchain toolchain_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Metrics metrics_;
  Artifacts artifacts_;
  KernelBuilder kernels_;
  const JobContext context_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> open_calls_{0};
  mutable std::mutex mutex_;  // over running_, what it points to, served_ and streams_
  RunningMap running_;
  std::map<ServedKey, std::weak_ptr<EventLog>> served_;
  std::map<const LogStream*, std::weak_ptr<LogStream>> streams_;
  size_t most_streams_ = 0;  // since there were none
  // Last, so that their threads see all of the above.
  std::optional<JobQueue> jobs_queue_;
  std::optional<JobQueue> front_queue_;
  std::optional<JobQueue> bench_queue_;  // absent without a bench process
};

std::shared_ptr<EventStream> Engine::Impl::Submit(const v1::CompileRequest& request) {
  ++metrics_.requests;
  auto stream = std::make_shared<LogStream>(
      LogStreamOptions{.with_ir = request.with_ir(), .with_cubins = request.with_cubins()});
  {
    std::lock_guard lock(mutex_);
    // Under the lock, so that CancelAll sees every stream that got past here.
    absl::Status refused;
    if (stopping_) {
      refused = Stopping();
    } else if (streams_.size() >= options_.stream_limit) {
      ++metrics_.refused_full;
      refused =
          absl::ResourceExhaustedError(absl::StrCat(streams_.size(), " answers are open, limit ",
                                                    options_.stream_limit, "; try again in 1 s"));
    }
    if (refused.ok()) {
      streams_.emplace(stream.get(), stream);
      most_streams_ = std::max(most_streams_, streams_.size());
    } else {
      stream->End(std::move(refused));
      return stream;
    }
  }
  absl::StatusOr<uint64_t> pushed =
      front_queue_->Push([this, stream, request] { Resolve(stream, request); });
  if (!pushed.ok()) {
    ++metrics_.refused_full;
    stream->End(pushed.status());
  }
  // An answer is open until its reader lets go: the thread that resolved it may hold it for longer,
  // and a caller that asks again at once must find the place free.
  LogStream* const raw = stream.get();
  return {raw, [weak = weak_from_this(), stream = std::move(stream)](EventStream*) mutable {
            if (std::shared_ptr<Impl> self = weak.lock()) {
              self->Release(std::move(stream));
            } else {
              stream->Leave();
            }
          }};
}

void Engine::Impl::Release(std::shared_ptr<LogStream> stream) {
  stream->Leave();
  bool trim = false;
  {
    std::lock_guard lock(mutex_);
    streams_.erase(stream.get());
    trim = streams_.empty() && std::exchange(most_streams_, 0) >= kManyStreams;
  }
  stream = nullptr;
  if (trim) TrimHeap();
}

absl::StatusOr<v1::worker::PlanCall> Engine::Impl::MakeCall(const v1::ModelDescription& model,
                                                            const v1::Target& target) const {
  HACKC_ASSIGN_OR_RETURN(v1::worker::PlanCall call,
                         PlanCallFrom(model, target, options_.default_arch));
  const auto& archs = toolchain_.archs();
  if (std::find(archs.begin(), archs.end(), call.arch()) == archs.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("target.arch: expected one of ", absl::StrJoin(archs, ", "), " (NVRTC ",
                     toolchain_.nvrtc_version(), "), got \"", call.arch(), "\""));
  }
  return call;
}

absl::StatusOr<cache::Key> Engine::Impl::ProgramKey(const v1::worker::PlanCall& call) {
  HACKC_ASSIGN_OR_RETURN(const CompileRequest request, RequestFromProto(call));
  try {
    HACKC_ASSIGN_OR_RETURN(const KeyFields fields, backend_->ProgramKeyFields(request));
    return MakeKey("program", fields, toolchain_.nvrtc_version());
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

void Engine::Impl::Resolve(const std::shared_ptr<LogStream>& stream,
                           const v1::CompileRequest& request) {
  if (stream->ended()) return;
  absl::StatusOr<v1::worker::PlanCall> call = MakeCall(request.model(), request.target());
  if (!call.ok()) return stream->End(call.status());
  const absl::StatusOr<cache::Key> key = ProgramKey(*call);
  if (!key.ok()) return stream->End(key.status());
  if (Join(key->digest(), *stream)) return;
  if (const std::shared_ptr<EventLog> stored = FromStore(*key, request.with_ir())) {
    stream->Attach(stored, [] {});
    Log().info("served {} from the store", key->digest().ToString());
    return;
  }
  StartJob(std::make_shared<CompileJob>(*key, request.model().name(), *std::move(call)), *stream);
}

// Null: it is not there, or not with its times.
std::shared_ptr<EventLog> Engine::Impl::FromStore(const cache::Key& key, bool with_ir) {
  const ServedKey served(key.digest(), with_ir);
  const auto count = [this](int kernels) {
    metrics_.kernel_hits += kernels;
    ++metrics_.program_hits;
  };
  {
    std::lock_guard lock(mutex_);
    if (const auto found = served_.find(served); found != served_.end()) {
      if (std::shared_ptr<EventLog> log = found->second.lock()) {
        count(log->kernels());
        return log;
      }
    }
  }
  const std::optional<StoredProgram> stored = artifacts_.FindProgram(key, with_ir);
  if (!stored) return nullptr;
  std::optional<std::string> timing = StoredTiming(*stored);
  if (!timing) return nullptr;
  auto log = std::make_shared<EventLog>();
  v1::Report report = AppendStored(*stored, *log);
  report.set_timing_json(*std::move(timing));
  AppendReport(*stored, std::move(report), *log);
  log->Finish(absl::OkStatus());
  count(log->kernels());
  std::lock_guard lock(mutex_);
  std::erase_if(served_, [](const auto& one) { return one.second.expired(); });
  served_[served] = log;
  return log;
}

bool Engine::Impl::Join(const cache::Digest& key, LogStream& stream) {
  std::shared_ptr<Running> running;
  {
    std::lock_guard lock(mutex_);
    const auto found = running_.find(key);
    if (found == running_.end()) return false;
    running = found->second;
    ++running->waiters;
    running->shared = true;
  }
  ++metrics_.program_joins;
  stream.Attach(running->job->log(), [weak = weak_from_this(), running] {
    if (std::shared_ptr<Impl> self = weak.lock()) self->Detach(running);
  });
  return true;
}

void Engine::Impl::StartJob(std::shared_ptr<CompileJob> job, LogStream& stream) {
  auto running = std::make_shared<Running>();
  running->job = std::move(job);
  const cache::Digest key = running->job->key().digest();
  while (true) {
    if (Join(key, stream)) return;  // another request was quicker since the last look
    std::unique_lock lock(mutex_);
    if (!running_.emplace(key, running).second) continue;
    absl::StatusOr<uint64_t> pushed = jobs_queue_->Push([this, running] { RunJob(running); });
    if (!pushed.ok()) {
      running_.erase(key);
      lock.unlock();
      ++metrics_.refused_full;
      return stream.End(pushed.status());
    }
    running->queue_id = *pushed;
    running->waiters = 1;
    break;
  }
  const uint32_t waiting = jobs_queue_->waiting();
  if (waiting > 0) AppendProgress(*running->job->log(), "queued", 0, waiting);
  stream.Attach(running->job->log(), [weak = weak_from_this(), running] {
    if (std::shared_ptr<Impl> self = weak.lock()) self->Detach(running);
  });
}

void Engine::Impl::Detach(const std::shared_ptr<Running>& running) {
  bool dropped = false;
  {
    std::lock_guard lock(mutex_);
    if (--running->waiters > 0) return;
    const auto found = running_.find(running->job->key().digest());
    if (found == running_.end() || found->second != running) return;  // it has ended
    dropped = jobs_queue_->Remove(running->queue_id);
    if (!dropped && running->shared) return;
    // From here on nobody can join a build that is being given up.
    running_.erase(found);
    running->job->Cancel();
  }
  ++metrics_.jobs_cancelled;
  if (dropped) running->job->log()->Finish(absl::CancelledError("nobody waited for this build"));
}

void Engine::Impl::RunJob(const std::shared_ptr<Running>& running) {
  const auto start = std::chrono::steady_clock::now();
  absl::Status status;
  try {
    status = running->job->Run(context_);
  } catch (const std::exception& error) {
    status = absl::InternalError(error.what());
  }
  const std::string key = running->job->key().digest().ToString();
  const double milliseconds = MillisecondsSince(start);
  if (status.ok()) {
    Log().info("built {} in {:.0f} ms", key, milliseconds);
  } else if (absl::IsCancelled(status)) {
    Log().info("gave up {} after {:.0f} ms: {}", key, milliseconds, std::string(status.message()));
  } else {
    Log().warn("failed {} after {:.0f} ms: {}", key, milliseconds, status.ToString());
  }
  if (!status.ok()) return EndJob(running, std::move(status));
  std::optional<std::string> timing = StoredTiming(running->job->program());
  if (!timing) {
    const absl::Status pushed = bench_queue_->Push([this, running] { TimeJob(running); }).status();
    if (pushed.ok()) return;  // TimeJob ends it
    timing = NotTimedJson(options_.gpu, std::string(pushed.message()));
  }
  running->job->AppendReport(*std::move(timing));
  EndJob(running, absl::OkStatus());
}

std::string Engine::Impl::Device() const {
  return absl::StrCat(options_.gpu.name, ", driver ", options_.gpu.driver, ", report ",
                      kTimingFormat);
}

std::optional<std::string> Engine::Impl::StoredTiming(const StoredProgram& program) {
  if (!bench_queue_) return "";
  if (program.program.arch() != options_.gpu.arch) {
    return NotTimedJson(options_.gpu, absl::StrCat("compiled for ", program.program.arch(),
                                                   ", the GPU is ", options_.gpu.arch));
  }
  std::string json = artifacts_.FindTiming(program.digest, Device());
  if (json.empty()) return std::nullopt;
  return json;
}

std::optional<TimerParts> Engine::Impl::Timer() {
  if (!options_.bench) return std::nullopt;
  return TimerParts{*backend_,       kernels_,     *pool_,
                    *options_.bench, options_.gpu, toolchain_.nvrtc_version()};
}

void Engine::Impl::TimeJob(const std::shared_ptr<Running>& running) {
  absl::Status status;
  try {
    status = running->job->TimeProgram(context_);
  } catch (const std::exception& error) {
    running->job->AppendReport(NotTimedJson(options_.gpu, error.what()));
  }
  EndJob(running, std::move(status));
}

void Engine::Impl::EndJob(const std::shared_ptr<Running>& running, absl::Status status) {
  // The store has the result, so whoever does not find the build finds that.
  Forget(*running);
  running->job->log()->Finish(std::move(status));
  TrimHeap();
}

void Engine::Impl::Forget(const Running& running) {
  std::lock_guard lock(mutex_);
  const auto found = running_.find(running.job->key().digest());
  if (found != running_.end() && found->second.get() == &running) running_.erase(found);
}

v1::StatusResponse Engine::Impl::Status() const {
  v1::StatusResponse status;
  status.set_version(HACKC_VERSION);
  status.set_arch(options_.default_arch);
  status.set_gpu(options_.gpu.name);
  status.set_nvrtc_version(toolchain_.nvrtc_version());
  *status.mutable_archs() = toolchain_.archs();
  status.set_workers(pool_->size());
  status.set_queued(jobs_queue_->waiting());
  status.set_running(jobs_queue_->running());
  status.set_compiled_kernels(metrics_.kernels_compiled);
  status.set_cache_hits(metrics_.kernel_hits);
  status.set_cache_misses(metrics_.kernel_misses);
  const cache::Stats cache = artifacts_.store().GetStats();
  status.set_cache_bytes(cache.total_bytes);
  status.set_cache_corruptions(cache.corruptions);
  status.set_cache_evictions(cache.evictions);
  const std::chrono::duration<double> up = std::chrono::steady_clock::now() - start_;
  status.set_uptime_seconds(up.count());
  status.set_stopping(stopping_);
  status.set_resident_bytes(ResidentBytes());
  status.set_requests(metrics_.requests);
  status.set_program_hits(metrics_.program_hits);
  status.set_program_joins(metrics_.program_joins);
  status.set_cancelled_builds(metrics_.jobs_cancelled);
  status.set_refused_requests(metrics_.refused_full);
  status.set_refused_kernels(metrics_.refused_kernels);
  status.set_workers_lost(pool_->lost() + (options_.bench ? options_.bench->lost() : 0));
  status.set_store_failures(metrics_.store_failures);
  std::lock_guard lock(mutex_);
  status.set_open_answers(streams_.size());
  return status;
}

bool Engine::Impl::Idle() const {
  {
    std::lock_guard lock(mutex_);
    if (!running_.empty() || !streams_.empty() || open_calls_ > 0) return false;
  }
  if (bench_queue_ && bench_queue_->waiting() + bench_queue_->running() > 0) return false;
  return jobs_queue_->waiting() + jobs_queue_->running() + front_queue_->waiting() +
             front_queue_->running() ==
         0;
}

void Engine::Impl::CancelAll() {
  std::vector<std::shared_ptr<LogStream>> streams;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& [raw, weak] : streams_) {
      if (std::shared_ptr<LogStream> stream = weak.lock()) streams.push_back(std::move(stream));
    }
    for (const auto& [key, running] : running_) running->job->Cancel();
  }
  for (const std::shared_ptr<LogStream>& stream : streams) stream->End(Stopping());
  pool_->Stop();
  if (options_.bench) options_.bench->Stop();
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(EngineOptions options,
                                                       std::shared_ptr<cache::Store> store,
                                                       std::shared_ptr<CompilerBackend> backend,
                                                       std::shared_ptr<WorkerPool> pool) {
  v1::worker::Request describe;
  describe.mutable_describe();
  HACKC_ASSIGN_OR_RETURN(v1::worker::Reply reply, pool->Run({.request = std::move(describe)}));
  return std::unique_ptr<Engine>(
      new Engine(std::make_shared<Impl>(std::move(options), std::move(store), std::move(backend),
                                        std::move(pool), reply.toolchain())));
}

Engine::~Engine() { impl_->Shutdown(); }

std::shared_ptr<EventStream> Engine::Submit(const v1::CompileRequest& request) {
  return impl_->Submit(request);
}

absl::Status Engine::Compile(const v1::CompileRequest& request, const EventSink& sink) {
  const std::shared_ptr<EventStream> stream = Submit(request);
  while (const std::optional<v1::CompileEvent> event = stream->WaitNext()) {
    if (!sink(*event)) {
      stream->Cancel();
      break;
    }
  }
  return stream->status();
}

absl::StatusOr<v1::Blob> Engine::Fetch(const std::string& digest) {
  HACKC_ASSIGN_OR_RETURN(const cache::Digest parsed, cache::Digest::Parse(digest));
  absl::StatusOr<std::string> bytes = impl_->artifacts_.store().GetBlob(parsed);
  if (!bytes.ok()) return absl::NotFoundError(absl::StrCat("no blob ", digest));
  v1::Blob blob;
  blob.set_digest(digest);
  blob.set_data(*std::move(bytes));
  return blob;
}

absl::StatusOr<v1::ExplainResponse> Engine::Explain(const v1::ExplainRequest& request,
                                                    std::function<bool()> cancelled) {
  HACKC_RETURN_IF_ERROR(CheckLevel(request.level()));
  v1::worker::Request call;
  HACKC_ASSIGN_OR_RETURN(*call.mutable_plan(), impl_->MakeCall(request.model(), request.target()));
  HACKC_ASSIGN_OR_RETURN(
      const v1::worker::Reply reply,
      impl_->pool_->Run({.request = std::move(call), .cancelled = std::move(cancelled)}));
  return SelectTexts(reply.plan(), request.kernel(), request.level());
}

absl::StatusOr<v1::ExplainKeyResponse> Engine::ExplainKey(const v1::ExplainKeyRequest& request) {
  HACKC_ASSIGN_OR_RETURN(const v1::worker::PlanCall call,
                         impl_->MakeCall(request.model(), request.target()));
  HACKC_ASSIGN_OR_RETURN(const cache::Key key, impl_->ProgramKey(call));
  v1::ExplainKeyResponse response;
  response.set_key(key.digest().ToString());
  response.set_fields(key.Explain());
  response.set_present(impl_->artifacts_.FindProgram(key, /*with_ir=*/false).has_value());
  if (!response.present()) {
    response.set_difference(
        cache::ExplainMiss(impl_->artifacts_.store(), key, request.model().name()));
  }
  return response;
}

v1::StatusResponse Engine::Status() const { return impl_->Status(); }

absl::StatusOr<Engine::Remover> Engine::RunOnJobs(std::function<void()> task) {
  return impl_->RunOn(*impl_->jobs_queue_, std::move(task));
}

absl::StatusOr<Engine::Remover> Engine::RunOnFront(std::function<void()> task) {
  return impl_->RunOn(*impl_->front_queue_, std::move(task));
}

absl::StatusOr<std::shared_ptr<void>> Engine::OpenCall() {
  std::lock_guard lock(impl_->mutex_);
  if (impl_->stopping_) return Stopping();
  ++impl_->open_calls_;
  return std::shared_ptr<void>(impl_.get(), [impl = impl_](void*) { --impl->open_calls_; });
}

void Engine::StopAccepting() {
  std::lock_guard lock(impl_->mutex_);
  impl_->stopping_ = true;
}

bool Engine::WaitIdle(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!impl_->Idle()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

void Engine::CancelAll() { impl_->CancelAll(); }

const Metrics& Engine::metrics() const { return impl_->metrics_; }

}  // namespace hackc::server
