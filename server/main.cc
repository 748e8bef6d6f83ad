// SPDX-License-Identifier: MIT
#include "server/server_main.h"

int main(int argc, char** argv) {
  return hackc::server::ServerMain(argc, argv, hackc::server::LinkedCompiler());
}
