// SPDX-License-Identifier: MIT
#include "server/server_options.h"

#include <CLI/CLI.hpp>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/local.h"
#include "server/replay.h"

namespace hackc::server {

namespace {

constexpr double kDay = 86400;  // seconds

// CLI::Range lets NaN pass.
CLI::Validator Between(double least, double most) {
  return CLI::Validator(
      [=](const std::string& text) {
        double value = 0;
        if (absl::SimpleAtod(text, &value) && value >= least && value <= most) return std::string();
        return absl::StrFormat("expected a number from %g to %g, got \"%s\"", least, most, text);
      },
      absl::StrFormat("%g..%g", least, most));
}

// host:port with a port beyond 65535 would listen on another one.
std::string CheckListen(const std::string& listen) {
  const size_t colon = listen.rfind(':');
  if (listen.starts_with("unix") || colon == std::string::npos) return "";
  uint64_t number = 0;
  const std::string text = listen.substr(colon + 1);
  if (!absl::SimpleAtoi(text, &number) || number <= 65535) return "";
  return absl::StrCat("expected a port up to 65535, got ", text);
}

}  // namespace

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
      ->check(CheckListen)
      ->capture_default_str();
  app.add_option("--port-file", options.port_file, "Write the port that was taken to this file");
  app.add_option("--gpu", gpu, "The GPU to measure on, or none")->capture_default_str();
  app.add_option("--arch", options.arch, "Target of requests that name none, such as sm_90a");
  app.add_option("--workers", options.workers, "Compile worker processes; 0: one for each core")
      ->check(Between(0, 1024));
  CLI::Option* cache_dir =
      app.add_option("--cache-dir", options.cache_dir, "Where the store is kept")
          ->capture_default_str();
  app.add_option("--cache-bytes", options.cache_bytes, "Size limit of the store")
      ->transform(CLI::AsSizeValue(false))
      ->check(Between(1 << 20, 0x1p60))
      ->capture_default_str();
  app.add_option("--replay-dir", options.replay_dir,
                 "Where a failing compile leaves what hackc-opt runs (CACHE_DIR/replay)");
  app.add_option("--pass-plugin", options.pass_plugin, "A shared library that adds passes")
      ->check(CLI::ExistingFile);
  app.add_option("--worker", options.worker_fd)->group("");  // not for people
  app.add_option("--queue", options.queue, "Builds that may wait")
      ->check(Between(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--log-format", options.log_format, "text or json, on standard error")
      ->transform(CLI::CheckedTransformer(formats, CLI::ignore_case));
  app.add_option("--grace", options.grace_seconds, "Seconds that SIGTERM leaves to work under way")
      ->check(Between(0, kDay))
      ->capture_default_str();
  app.add_option("--call-seconds", options.call_seconds, "Time limit of one call to a worker")
      ->check(Between(0.01, kDay))
      ->capture_default_str();
  app.add_option("--bench-seconds", options.bench_seconds,
                 "Time limit of one kernel on the GPU; one that hangs costs this much")
      ->check(Between(0.01, kDay))
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
