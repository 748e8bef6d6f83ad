// SPDX-License-Identifier: MIT
#include "server/server_main.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "cache/directory.h"
#include "cache/memory_store.h"
#include "cache/sqlite_store.h"
#include "compiler/support/status_macros.h"
#include "server/bench/bench_handler.h"
#include "server/compiler_service.h"
#include "server/engine.h"
#include "server/gpu_probe.h"
#include "server/log.h"
#include "server/replay.h"
#include "server/server_options.h"
#include "server/worker_pool.h"
#include "server/worker_process.h"

namespace hackc::server {
namespace {

using std::chrono::milliseconds;

// A program with all its constants is a few MB, its cubins go one by one. Requests are configs.
constexpr int kMaxSendBytes = 64 << 20;
constexpr int kMaxReceiveBytes = 4 << 20;

// Passes recurse (compile.h), and a service manager may have set another limit.
void SetThreadStacks() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t{8} << 20);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

// Few arenas, and large buffers straight from the system: an idle server gives back what builds
// needed.
void KeepHeapSmall() {
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_MMAP_THRESHOLD, 256 << 10);
}

// gRPC tells on stderr what the status of a call or of the start tells too.
void QuietGrpc(gpr_log_func_args* args) { Log().debug("grpc: {}", args->message); }

// What it complains of is in a message of somebody else; whoever reads it has the status.
void LogProtobuf(google::protobuf::LogLevel, const char*, int, const std::string& message) {
  Log().warn("protobuf: {}", message);
}

absl::StatusOr<std::shared_ptr<cache::Store>> OpenStore(const ServerOptions& options) {
  absl::Status status = absl::FailedPreconditionError("no home directory");
  if (!options.cache_dir.empty()) {
    absl::StatusOr<std::unique_ptr<cache::Store>> store = cache::OpenSqliteStore(
        {.directory = options.cache_dir,
         .limit_bytes = static_cast<int64_t>(options.cache_bytes),
         .warn = [](const std::string& message) { Log().warn("{}", message); }});
    if (store.ok()) return std::shared_ptr<cache::Store>(*std::move(store));
    status = store.status();
  }
  if (options.cache_dir_given) return status;
  Log().warn("no cache directory, nothing is kept after the server stops: {}",
             std::string(status.message()));
  return std::make_shared<cache::MemoryStore>();
}

// One process: kernels are measured one after another. A kernel that loses it is not tried again.
std::shared_ptr<WorkerPool> MakeBenchPool(int gpu, double limit_seconds) {
  const milliseconds limit(static_cast<int64_t>(limit_seconds * 1000));
  return std::make_shared<WorkerPool>(
      1,
      [gpu] {
        return std::make_unique<WorkerProcess>(WorkerProcessOptions{
            .argv = {"/proc/self/exe", "--bench", std::to_string(gpu)}, .calls_per_process = 4096});
      },
      WorkerLimits{.describe = milliseconds(60'000), .bench = limit, .attempts = 1});
}

ReplayOptions ReplaysOf(const ServerOptions& options) {
  return {.directory = options.replay_dir, .pass_plugin = options.pass_plugin};
}

std::vector<std::string> WorkerArguments(const ServerOptions& options) {
  std::vector<std::string> argv = {"/proc/self/exe", "--replay-dir", options.replay_dir,
                                   "--log-format",
                                   options.log_format == LogFormat::kJson ? "json" : "text"};
  if (!options.pass_plugin.empty()) {
    argv.insert(argv.end(), {"--pass-plugin", options.pass_plugin});
  }
  argv.push_back("--worker");
  return argv;
}

absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(const ServerOptions& options,
                                                   std::shared_ptr<CompilerBackend> backend,
                                                   const GpuInfo& gpu) {
  HACKC_ASSIGN_OR_RETURN(std::shared_ptr<cache::Store> store, OpenStore(options));
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const milliseconds limit(static_cast<int64_t>(options.call_seconds * 1000));
  auto pool = std::make_shared<WorkerPool>(
      options.workers > 0 ? options.workers : cores,
      [argv = WorkerArguments(options)] {
        return std::make_unique<WorkerProcess>(WorkerProcessOptions{.argv = argv});
      },
      WorkerLimits{.plan = limit, .kernel = limit},
      [replays = ReplaysOf(options)](const auto& request, const absl::Status& status) {
        return LeaveReplay(status, request, replays);
      });
  EngineOptions engine_options{.gpu = gpu, .queue_limit = options.queue};
  if (options.gpu) engine_options.bench = MakeBenchPool(*options.gpu, options.bench_seconds);
  if (!gpu.arch.empty()) engine_options.default_arch = gpu.arch;
  if (!options.arch.empty()) engine_options.default_arch = options.arch;
  return Engine::Create(std::move(engine_options), std::move(store), std::move(backend),
                        std::move(pool));
}

// gRPC takes the path of a unix socket from whoever listens there: two servers would each have some
// of the clients.
absl::StatusOr<std::optional<cache::FileLock>> LockSocket(const std::string& listen) {
  constexpr std::string_view kUnix = "unix:";
  if (!listen.starts_with(kUnix)) return std::nullopt;
  std::string path = listen.substr(kUnix.size());
  if (path.starts_with("//")) path.erase(0, 2);
  absl::StatusOr<cache::FileLock> lock =
      cache::FileLock::Acquire(path + ".lock", absl::ZeroDuration());
  if (lock.ok()) return std::optional<cache::FileLock>(*std::move(lock));
  return absl::UnavailableError(absl::StrCat(
      "cannot listen on ", listen, ": ",
      absl::IsUnavailable(lock.status()) ? absl::StrCat("another server does (", path, ".lock)")
                                         : std::string(lock.status().message())));
}

absl::Status WritePortFile(const std::string& path, int port) {
  const std::string temporary = path + ".new";  // readers see the whole number or no file
  std::ofstream file(temporary);
  file << port << "\n";
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    return absl::FailedPreconditionError(absl::StrCat("cannot write --port-file ", path));
  }
  return absl::OkStatus();
}

// The signals are blocked in every thread, so only this gets them.
bool WaitForStopSignal(const sigset_t& signals, milliseconds limit) {
  const timespec time{limit.count() / 1000, limit.count() % 1000 * 1'000'000};
  return sigtimedwait(&signals, nullptr, &time) > 0;
}

// First phase: refuse and drain, while health checks see NOT_SERVING. Second: cancel what is left.
void Stop(Engine& engine, grpc::Server& server, const sigset_t& signals, double grace_seconds) {
  Log().info("stopping: new work is refused, work under way has {} s", grace_seconds);
  server.GetHealthCheckService()->SetServingStatus(false);
  engine.StopAccepting();
  const auto deadline =
      std::chrono::steady_clock::now() + milliseconds(static_cast<int64_t>(grace_seconds * 1000));
  bool idle = false;
  while (!(idle = engine.WaitIdle(milliseconds(0))) &&
         std::chrono::steady_clock::now() < deadline) {
    if (WaitForStopSignal(signals, milliseconds(20))) break;  // asked twice: at once
  }
  if (!idle) Log().warn("cancelling work under way");
  engine.CancelAll();
  // No call is open by now but health watches. Clients that sit on an idle connection without
  // looking at it would hold the end up to the deadline.
  server.Shutdown(std::chrono::system_clock::now() + milliseconds(idle ? 100 : 500));
}

absl::Status Serve(const ServerOptions& options, std::shared_ptr<CompilerBackend> backend,
                   const sigset_t& signals) {
  GpuInfo gpu;
  if (options.gpu) {
    HACKC_ASSIGN_OR_RETURN(gpu, ProbeGpu(*options.gpu));
  }
  HACKC_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                         MakeEngine(options, std::move(backend), gpu));
  const v1::StatusResponse status = engine->Status();
  if (std::find(status.archs().begin(), status.archs().end(), status.arch()) ==
      status.archs().end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.arch.empty() ? "the GPU" : "--arch", ": expected one of ",
                     absl::StrJoin(status.archs(), ", "), ", got \"", status.arch(), "\""));
  }
  HACKC_ASSIGN_OR_RETURN(const std::optional<cache::FileLock> lock, LockSocket(options.listen));
  CompilerService service(*engine);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(), &port);
  // With it, a second server on the same port would silently take half of the clients.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // A client whose machine is gone would hold its stream for ever.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder.SetMaxSendMessageSize(kMaxSendBytes);
  builder.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || (port == 0 && !options.listen.starts_with("unix:"))) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", options.listen,
                     ": the address is in use, or not one of this machine"));
  }
  if (!options.port_file.empty()) HACKC_RETURN_IF_ERROR(WritePortFile(options.port_file, port));
  Log().info(
      "hackc-server {} listens on {} (port {}), target {}, GPU {}, NVRTC {}, {} workers, cache {}",
      status.version(), options.listen, port, status.arch(), gpu.name.empty() ? "none" : gpu.name,
      status.nvrtc_version(), status.workers(), options.cache_dir);
  while (!WaitForStopSignal(signals, std::chrono::hours(1))) {
  }
  Stop(*engine, *server, signals, options.grace_seconds);
  Log().info("stopped");
  return absl::OkStatus();
}

}  // namespace

int ServerMain(int argc, char** argv, std::shared_ptr<CompilerBackend> backend) {
  SetThreadStacks();
  // What they would end the process for is an error of a write: a client that has gone, a file as
  // large as it may be.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  if (argc == 4 && std::string_view(argv[1]) == "--bench") {
    return ServeCalls(std::atoi(argv[3]), "hackc-bench", BenchHandler(std::atoi(argv[2])));
  }
  ServerOptions options;
  if (const std::optional<int> exit_code = ParseOptions(argc, argv, options)) return *exit_code;
  ConfigureLog(options.log_format);
  google::protobuf::SetLogHandler(LogProtobuf);
  if (!options.pass_plugin.empty()) {
    if (const absl::Status loaded = backend->LoadPassPlugin(options.pass_plugin); !loaded.ok()) {
      Log().error("hackc-server: {}", std::string(loaded.message()));
      return 1;
    }
  }
  backend = WithReplayFiles(std::move(backend), ReplaysOf(options));
  if (options.worker_fd) {
    return ServeCalls(*options.worker_fd, "hackc-worker",
                      [&backend](const auto& request) { return HandleCall(*backend, request); });
  }
  KeepHeapSmall();
  gpr_set_log_function(QuietGrpc);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  if (const absl::Status status = Serve(options, std::move(backend), signals); !status.ok()) {
    Log().error("hackc-server: {}", std::string(status.message()));
    return 1;
  }
  return 0;
}

}  // namespace hackc::server
