// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "configurations.hpp"
#include "trainer.hpp"

template <nn::DecoderConfig C>
void run(const Options& options, const std::string& text) {
  xla::eager_mode(options.mode != "traced");
  xla::manual_seed(options.seed);
  if (options.mode == "compiled") {
    auto functions = compiled_functions();
    Trainer<C, decltype(functions)>{options, functions, text}.run();
  } else {
    auto functions = plain_functions();
    Trainer<C, decltype(functions)>{options, functions, text}.run();
  }
}
