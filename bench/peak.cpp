// SPDX-License-Identifier: Apache-2.0
// peak <threads>: answers `run` with the multiply-adds per second that the machine does now.

#include "peak.hpp"

#include <cstdlib>
#include <iostream>
#include <string>

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  std::cout << R"({"ready": "peak", "version": ")" << bench::compiler() << R"(", "isa": ")"
            << bench::instruction_set() << "\"}" << std::endl;
  for (std::string line; std::getline(std::cin, line) && line.rfind("run", 0) == 0;)
    std::cout << R"({"gflops": )" << bench::fma_peak(threads) << "}" << std::endl;
}
