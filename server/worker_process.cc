// SPDX-License-Identifier: MIT
#include "server/worker_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "server/message_channel.h"

extern char** environ;

namespace hackc::server {
namespace {

using v1::worker::Reply;
using v1::worker::Request;

constexpr int kWorkerFd = 3;  // the first after stdin, stdout, stderr

std::string DescribeExit(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return absl::StrCat("killed by signal ", signal, " (", strsignal(signal), ")");
  }
  return absl::StrCat("exited with code ", WEXITSTATUS(wait_status));
}

}  // namespace

WorkerProcess::~WorkerProcess() { End(); }

absl::Status WorkerProcess::Start() {
  if (losses_in_a_row_ > 0) {
    const std::chrono::milliseconds pause = std::min(
        options_.longest_pause, options_.first_pause * (1 << std::min(losses_in_a_row_ - 1, 10)));
    std::unique_lock lock(mutex_);
    interrupt_.wait_for(lock, pause, [this] { return interrupted_; });
  }
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::UnavailableError(absl::StrCat("socketpair: ", std::strerror(errno)));
  }
  // dup2 onto itself would keep close-on-exec, so the worker's end must not be kWorkerFd already.
  if (ends[1] == kWorkerFd) {
    ends[1] = fcntl(ends[1], F_DUPFD_CLOEXEC, kWorkerFd + 1);
    close(kWorkerFd);
  }
  std::vector<std::string> arguments = options_.argv;
  arguments.push_back(std::to_string(kWorkerFd));
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], kWorkerFd);
  posix_spawn_file_actions_addclosefrom_np(&actions, kWorkerFd + 1);
  std::unique_lock lock(mutex_);
  int error = ECANCELED;
  if (!interrupted_) {
    error = posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
    if (error != 0) pid_ = -1;
  }
  lock.unlock();
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return absl::UnavailableError(
        absl::StrCat("cannot start ", argv[0], ": ", std::strerror(error)));
  }
  fd_ = ends[0];
  calls_ = 0;
  return absl::OkStatus();
}

std::string WorkerProcess::End() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
  std::lock_guard lock(mutex_);
  if (pid_ < 0) return "not running";
  // A process that closed its channel is on its way out: leave it a moment to say how it died.
  int wait_status = 0;
  pid_t reaped = 0;
  for (int i = 0; i < 20 && reaped == 0; ++i) {
    reaped = waitpid(pid_, &wait_status, WNOHANG);
    if (reaped == 0) usleep(1000);
  }
  if (reaped == 0) {
    kill(pid_, SIGKILL);
    while ((reaped = waitpid(pid_, &wait_status, 0)) < 0 && errno == EINTR) {
    }
  }
  pid_ = -1;
  return reaped > 0 ? DescribeExit(wait_status) : "gone";
}

absl::StatusOr<Reply> WorkerProcess::Call(const Request& request, std::chrono::milliseconds limit) {
  if (fd_ < 0) {
    if (absl::Status started = Start(); !started.ok()) {
      ++losses_in_a_row_;
      return started;
    }
  }
  const Deadline deadline = std::chrono::steady_clock::now() + limit;
  Reply reply;
  absl::Status status = SendMessage(fd_, request, deadline);
  if (status.ok()) status = ReceiveMessage(fd_, &reply, deadline);
  if (status.ok()) {
    losses_in_a_row_ = 0;
    if (++calls_ >= options_.calls_per_process || reply.last()) End();
    return reply;
  }
  ++losses_in_a_row_;
  const std::string end = End();
  switch (status.code()) {
    case absl::StatusCode::kDeadlineExceeded:
      return absl::DeadlineExceededError(
          absl::StrCat("no answer within ", limit.count() / 1000.0, " s; killed"));
    case absl::StatusCode::kDataLoss:
      return absl::DataLossError(absl::StrCat("it sent garbage (", status.message(), "); killed"));
    default: return absl::UnavailableError(end);
  }
}

void WorkerProcess::Interrupt() {
  std::lock_guard lock(mutex_);
  interrupted_ = true;
  if (pid_ > 0) kill(pid_, SIGKILL);
  interrupt_.notify_all();
}

int ServeCalls(int fd, const char* name, const CallHandler& handler) {
  // The parent may have died before this line; then the channel is closed and the loop ends at
  // once.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, name);
  // A terminal's Ctrl-C and a service manager's SIGTERM go to the whole group: the server decides.
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  while (true) {
    Request request;
    const absl::Status received = ReceiveMessage(fd, &request, kNoDeadline);
    if (absl::IsUnavailable(received)) return 0;
    if (!received.ok()) return 1;
    const Reply reply = handler(request);
    if (!SendMessage(fd, reply, kNoDeadline).ok()) return 1;
    if (reply.last()) return 0;
  }
}

}  // namespace hackc::server
