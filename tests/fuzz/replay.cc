// SPDX-License-Identifier: MIT
// Runs a fuzz target without libFuzzer: every file of the folders, then seeded mutations of them
// for as long as is asked. One line at the end says how many; an input that crashes or takes more
// than a second of processor time is written to ./failing-input, and the exit status is not 0.
//
//   fuzz_ir_text_replay [--seconds 3] [--seed 1] FILE_OR_FOLDER...
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_target.h"

namespace {

constexpr double kSecondsPerInput = 1;
constexpr int kHangSeconds = 30;  // of wall time, on a machine that may be busy
constexpr char kFailingInput[] = "failing-input";

std::string* current = nullptr;

// Only what a signal handler may call.
void WriteCurrent() {
  const int file = open(kFailingInput, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0 || current == nullptr) return;
  if (write(file, current->data(), current->size()) < 0) return;
  close(file);
}

extern "C" void OnSignal(int signal) {
  WriteCurrent();
  constexpr char kMessage[] = "replay: crashed or hung; the input is in ./failing-input\n";
  if (write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1) < 0) _exit(2);
  std::signal(signal, SIG_DFL);
  raise(signal);
}

double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void RunOne(std::string input) {
  current = &input;
  alarm(kHangSeconds);
  const double start = ProcessorSeconds();
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  const double took = ProcessorSeconds() - start;
  alarm(0);
  if (took > kSecondsPerInput) {
    WriteCurrent();
    std::fprintf(stderr, "replay: an input of %zu bytes took %.1f s; it is in ./%s\n", input.size(),
                 took, kFailingInput);
    std::exit(1);
  }
  current = nullptr;
}

std::vector<std::string> ReadAll(const std::string& path) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  } else {
    files.emplace_back(path);
  }
  std::sort(files.begin(), files.end());  // the same seed gives the same run everywhere
  std::vector<std::string> contents;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    contents.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return contents;
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 0;
  uint64_t seed = 1;
  std::vector<std::string> corpus;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
      seconds = std::atof(argv[++i]);
    } else if (std::strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else {
      std::vector<std::string> contents = ReadAll(argv[i]);
      std::move(contents.begin(), contents.end(), std::back_inserter(corpus));
    }
  }
  if (corpus.empty()) {
    std::fprintf(stderr, "replay: no inputs\n");
    return 2;
  }
  // On a stack of its own: what nests too deep has none left.
  static char handler_stack[1 << 16];
  const stack_t stack{.ss_sp = handler_stack, .ss_flags = 0, .ss_size = sizeof(handler_stack)};
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_ONSTACK;
  for (int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS, SIGALRM}) {
    sigaction(signal, &action, nullptr);
  }
  const double start = ProcessorSeconds();
  for (const std::string& input : corpus) RunOne(input);
  hackc::fuzz::Random random(seed);
  size_t mutations = 0;
  while (ProcessorSeconds() - start < seconds) {
    std::string input = corpus[random.Below(corpus.size())];
    for (size_t rounds = 1 + random.Below(4); rounds > 0; --rounds) {
      input = random.OneIn(4) ? hackc::fuzz::MutateBytes(std::move(input), random)
                              : hackc::fuzz::Mutate(std::move(input), random);
    }
    RunOne(std::move(input));
    ++mutations;
  }
  std::printf("replay: %zu inputs of the corpus and %zu mutations, seed %llu\n", corpus.size(),
              mutations, static_cast<unsigned long long>(seed));
  return 0;
}
