// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a contestant talks to compare.py: it reads commands from stdin, and answers in JSON.

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>

#include <xla/run/backend/backend.hpp>
#include <xla/run/state/metrics.hpp>

#include "measure.hpp"

namespace bench {

/// What a contestant answers: nanoseconds, and a number that all contestants must agree on.
struct turn {
  double ns;
  double loss;
};

/// Milliseconds that XLA has compiled its longest program for; 0 where it is not the backend.
inline double compile_ms() {
  double most = 0;
  if (const auto all = xla::metric_data("Pjrt::CompileTime"))
    for (const auto& one : all->samples) most = std::max(most, one.value * 1e-6);
  return most;
}

/// Says that the contestant is ready, then answers `run N` with run(N), a turn; see contest.py.
template <class Run>
int serve(std::string_view mode, Run&& run) {
  const bool plan = xla::backend_name() == "native";
  std::cout << R"({"ready": "xla )" << mode << (plan ? "" : " on ")
            << (plan ? "" : xla::backend_name()) << R"(", "version": ")" << compiler()
            << R"(", "isa": ")" << instruction_set() << R"(", "compile_ms": )" << compile_ms()
            << "}" << std::endl;
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
