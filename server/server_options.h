// SPDX-License-Identifier: MIT
// The command line of hackc-server.
//
//   ServerOptions options;
//   if (std::optional<int> exit_code = ParseOptions(argc, argv, options)) return *exit_code;
//
// Thread safety: called once, by main.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "server/log.h"

namespace hackc::server {

struct ServerOptions {
  std::string listen = "127.0.0.1:7070";
  std::string port_file;
  std::optional<int> gpu;
  std::string arch;  // empty: the GPU's, else sm_90a
  int workers = 0;   // 0: one for each core
  std::string cache_dir;
  bool cache_dir_given = false;
  uint64_t cache_bytes = uint64_t{10} << 30;
  std::string replay_dir;  // where failures leave replay files
  std::string pass_plugin;
  std::optional<int> worker_fd;  // a compile worker: no server
  size_t queue = 64;
  LogFormat log_format = LogFormat::kText;
  double grace_seconds = 20;
  double call_seconds = 120;  // limit of one call to a worker
  double bench_seconds = 30;  // limit of one kernel's check and times
};

// A value: the process ends here with that code (help, version, or a bad option, said on stderr).
std::optional<int> ParseOptions(int argc, char** argv, ServerOptions& options);

}  // namespace hackc::server
