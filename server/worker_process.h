// SPDX-License-Identifier: MIT
// A compile worker in its own process: this binary (or another) started again with `--worker FD`,
// one end of a socket pair as FD. A crash, a hang or garbage costs that process, which is killed
// and started again at the next call, after a pause that doubles with each loss in a row. The
// process ends by itself when the server does: the kernel kills it (PR_SET_PDEATHSIG), and its
// channel closes.
//
//   WorkerProcess worker({.argv = {"/proc/self/exe", "--worker"}});
//   worker.Call(request, limit);  // there: return ServeCalls(fd, "hackc-worker", handler);
//
// A reply that says it is the last one ends the process too, with no loss counted.
//
// Thread safety: as Worker says.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "server/worker.h"

namespace hackc::server {

struct WorkerProcessOptions {
  std::vector<std::string> argv;  // the FD is appended
  int calls_per_process = 256;    // then a fresh one: bounds what NVRTC leaks
  std::chrono::milliseconds first_pause{50};
  std::chrono::milliseconds longest_pause{2000};
};

class WorkerProcess : public Worker {
 public:
  explicit WorkerProcess(WorkerProcessOptions options) : options_(std::move(options)) {}
  ~WorkerProcess() override;

  absl::StatusOr<v1::worker::Reply> Call(const v1::worker::Request& request,
                                         std::chrono::milliseconds limit) override;
  void Interrupt() override;

 private:
  absl::Status Start();
  // Kills the process if need be and says how it ended.
  std::string End();

  const WorkerProcessOptions options_;
  int fd_ = -1;
  int calls_ = 0;  // answered by this process
  int losses_in_a_row_ = 0;
  std::mutex mutex_;
  std::condition_variable interrupt_;
  pid_t pid_ = -1;  // under mutex_, so that Interrupt never hits a reused pid
  bool interrupted_ = false;
};

// The life of a worker process, called `name` in lists of processes: answers calls on `fd` until it
// closes or an answer is the last. Returns the exit code.
using CallHandler = std::function<v1::worker::Reply(const v1::worker::Request&)>;
int ServeCalls(int fd, const char* name, const CallHandler& handler);

}  // namespace hackc::server
