// SPDX-License-Identifier: MIT
#include "server/server_main.h"
#include "tests/server/fake_compiler.h"

int main(int argc, char** argv) {
  return hackc::server::ServerMain(argc, argv, std::make_shared<hackc::server::FakeCompiler>());
}
