// SPDX-License-Identifier: MIT
// hackc-server but for the choice of the compiler.
//
//   int main(int argc, char** argv) { return ServerMain(argc, argv, LinkedCompiler()); }
//
// Started with `--worker FD` it is a compile worker (worker_process.h) instead, with `--bench GPU
// FD` a bench process (bench/bench_handler.h). Thread safety: called once, by main.
#pragma once

#include <memory>

#include "server/backend.h"

namespace hackc::server {

int ServerMain(int argc, char** argv, std::shared_ptr<CompilerBackend> backend);

}  // namespace hackc::server
