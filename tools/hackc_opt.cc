// SPDX-License-Identifier: MIT
#include <exception>
#include <iostream>

#include "tools/opt/opt.h"

int main(int argc, char** argv) {
  try {
    return hackc::opt::RunOpt({argv + 1, argv + argc}, std::cin, std::cout, std::cerr);
  } catch (const std::exception& error) {
    std::cerr << "hackc-opt: " << error.what() << std::endl;
    return hackc::opt::kExitInternal;
  }
}
