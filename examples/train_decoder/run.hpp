// SPDX-License-Identifier: Apache-2.0
#pragma once

// Trains one configuration in the mode that the options name. Each configuration's file includes
// it, so that they are compiled separately.

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
    const auto train = [&](auto functions) {
      Trainer<C, decltype(functions)>{options, functions, text, interrupts}.run();
    };
    if (options.mode != "compiled") train(plain_functions(options.autocast));
    else if (!options.autocast) train(compiled_functions<false>());
    else if constexpr (has_autocast<C>) train(compiled_functions<true>());
    else throw xla::runtime_error("--autocast: not compiled for " + options.config);
  });
}
