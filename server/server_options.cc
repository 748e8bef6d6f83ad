// SPDX-License-Identifier: MIT
#include "server/server_options.h"

#include <CLI/CLI.hpp>
#include <map>

#include "absl/strings/numbers.h"
#include "server/local.h"
#include "server/replay.h"

namespace hackc::server {

std::optional<int> ParseOptions(int argc, char** argv, ServerOptions& options) {
  CLI::App app("The compile server for LLM kernels.", "hackc-server");
  app.set_version_flag("--version", "hackc " HACKC_VERSION);
  // A unit file's options may be followed by this machine's.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  std::string gpu = "none";
  options.cache_dir = DefaultCacheDir();
  const std::map<std::string, LogFormat> formats{{"text", LogFormat::kText},
                                                 {"json", LogFormat::kJson}};
  app.add_option("--listen", options.listen, "Address to listen on; port 0 takes a free one")
      ->capture_default_str();
  app.add_option("--port-file", options.port_file, "Write the port that was taken to this file");
  app.add_option("--gpu", gpu, "The GPU to measure on, or none")->capture_default_str();
  app.add_option("--arch", options.arch, "Target of requests that name none, such as sm_90a");
  app.add_option("--workers", options.workers, "Compile worker processes; 0: one for each core")
      ->check(CLI::Range(0, 1024));
  CLI::Option* cache_dir =
      app.add_option("--cache-dir", options.cache_dir, "Where the store is kept")
          ->capture_default_str();
  app.add_option("--cache-bytes", options.cache_bytes, "Size limit of the store")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_option("--replay-dir", options.replay_dir,
                 "Where a failing compile leaves what hackc-opt runs (CACHE_DIR/replay)");
  app.add_option("--pass-plugin", options.pass_plugin, "A shared library that adds passes")
      ->check(CLI::ExistingFile);
  app.add_option("--worker", options.worker_fd)->group("");  // not for people
  app.add_option("--queue", options.queue, "Builds that may wait")->capture_default_str();
  app.add_option("--log-format", options.log_format, "text or json, on standard error")
      ->transform(CLI::CheckedTransformer(formats, CLI::ignore_case));
  app.add_option("--grace", options.grace_seconds, "Seconds that SIGTERM leaves to work under way")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--call-seconds", options.call_seconds, "Time limit of one call to a worker")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--bench-seconds", options.bench_seconds,
                 "Time limit of one kernel on the GPU; one that hangs costs this much")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  try {
    app.parse(argc, argv);
    if (gpu != "none") {
      int index = 0;
      if (!absl::SimpleAtoi(gpu, &index) || index < 0) {
        throw CLI::ValidationError("--gpu",
                                   "expected a device number or none, got \"" + gpu + "\"");
      }
      options.gpu = index;
    }
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  options.cache_dir_given = cache_dir->count() > 0;
  if (options.replay_dir.empty()) options.replay_dir = DefaultReplayDir(options.cache_dir);
  return std::nullopt;
}

}  // namespace hackc::server
