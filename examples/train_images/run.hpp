// SPDX-License-Identifier: Apache-2.0
#pragma once

// Trains one network in the mode that the options name. Each network's file includes it, so that
// they are compiled separately.

#include "../image_models.hpp"
#include "trainer.hpp"

template <class Entry>
void run(const Options& given) {
  Options options = given;
  if (options.size == 0) options.size = Entry::size;
  if (options.lr == 0) options.lr = Entry::lr;
  if (options.resize == 0)  // 256 for 224, as ImageNet's; nothing is cut off small pictures
    options.resize = options.augment == "resized" ? options.size * 8 / 7 : options.size;
  xla::eager_mode(options.mode != "traced");
  xla::manual_seed(options.seed);
  if (options.mode == "compiled") {
    auto functions = compiled_functions();
    Trainer<Entry, decltype(functions)>{options, functions}.run();
  } else {
    auto functions = plain_functions();
    Trainer<Entry, decltype(functions)>{options, functions}.run();
  }
}
