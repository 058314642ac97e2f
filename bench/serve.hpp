// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>

#include "measure.hpp"

namespace bench {

/// What a contestant answers: nanoseconds, and a number that all contestants must agree on.
struct turn {
  double ns;
  double loss;
};

/// Says that the contestant is ready, then answers `run N` with run(N), a turn; see contest.py.
template <class Run>
int serve(std::string_view mode, Run&& run) {
  std::cout << R"({"ready": "xla )" << mode << R"(", "version": ")" << compiler()
            << R"(", "isa": ")" << instruction_set() << "\"}" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words{line};
    std::string command;
    int n = 0;
    if (!(words >> command >> n) || command != "run") break;
    const turn t = run(n);
    std::cout << R"({"ns": )" << std::int64_t(t.ns) << R"(, "loss": )" << json_number(t.loss) << "}"
              << std::endl;
  }
  return 0;
}

}  // namespace bench
