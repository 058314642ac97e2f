// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <xla/io/terminal.hpp>
#include <xla/parallel.hpp>

#include "configurations.hpp"
#include "trainer.hpp"

template <nn::DecoderConfig C>
void run(const Options& options, const std::string& text) {
  xla::eager_mode(options.mode != "traced");
  const xla::io::interrupt_guard interrupts;
  xla::launch([&](std::int64_t) {
    xla::manual_seed(options.seed);
    if (options.mode == "compiled") {
      auto functions = compiled_functions();
      Trainer<C, decltype(functions)>{options, functions, text, interrupts}.run();
    } else {
      auto functions = plain_functions();
      Trainer<C, decltype(functions)>{options, functions, text, interrupts}.run();
    }
  });
}
