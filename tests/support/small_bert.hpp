// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/models/bert.hpp"

namespace test {

/// The BERT of bert_vit.py: few words, two layers.
constexpr xla::models::BertConfig small_bert(bool dropout = false) {
  return {.vocab_size = 50,
          .hidden_size = 16,
          .num_hidden_layers = 2,
          .num_attention_heads = 2,
          .intermediate_size = 24,
          .max_position_embeddings = 12,
          .dropout = dropout};
}

}  // namespace test
