// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/models/vit.hpp"

namespace test {

/// The vision transformer of bert_vit.py: small images, two layers.
constexpr xla::models::VisionTransformerConfig small_vit(bool dropout = false) {
  return {.image_size = 12,
          .patch_size = 4,
          .num_layers = 2,
          .num_heads = 2,
          .hidden_dim = 16,
          .mlp_dim = 24,
          .num_classes = 10,
          .dropout = dropout};
}

}  // namespace test
