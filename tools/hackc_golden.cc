// SPDX-License-Identifier: MIT
#include <exception>
#include <iostream>

#include "tools/golden/gpu/golden.h"

int main(int argc, char** argv) {
  try {
    return hackc::golden::RunGolden({argv + 1, argv + argc}, std::cout, std::cerr);
  } catch (const std::exception& error) {
    std::cerr << "hackc-golden: " << error.what() << std::endl;
    return 1;
  }
}
