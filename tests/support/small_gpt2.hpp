// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/models/gpt2.hpp"

namespace test {

/// The GPT-2 of gpt2_llama.py: few words, two layers.
inline constexpr auto small_gpt2 = [] {
  auto c = xla::models::gpt2;
  c.hidden = 32;
  c.layers = 2;
  c.heads = c.kv_heads = 4;
  c.intermediate = 128;
  c.vocabulary = 29;
  c.max_positions = 12;
  return c;
}();

}  // namespace test
