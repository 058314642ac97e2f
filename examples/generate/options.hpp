// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// What the command line and the folder of weights say.
struct Options {
  std::string folder, tokenizer;
  std::string prompt = "Once upon a time";
  std::int64_t length = 200;
  double temperature = 0.8;
  std::int64_t top_k = 0;
  double top_p = 0.95;
  std::uint64_t seed = 42;
  int threads = 0;
  bool numbers = false;
  std::vector<std::int64_t> ends;  ///< tokens after which nothing is written
};
