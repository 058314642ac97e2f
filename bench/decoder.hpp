// SPDX-License-Identifier: Apache-2.0
#pragma once

// The training of a decoder as a task of training.hpp. The contestants decoder*.cpp are instances.

#include "decoder_task.hpp"
#include "training.hpp"

namespace bench {

template <xla::nn::DecoderConfig C, template <class...> class Optimizer, std::int64_t Batch,
          std::int64_t Sequence>
struct decoder_training {
  using Model = xla::nn::Decoder<C>;
  static constexpr auto step = decoder_step;
  static constexpr int warm = 2;  // as in peers/decoder_task.py
  static void set_weights(Model& model) { set_decoder_weights(model); }
  static auto optimizer(Model& model) { return Optimizer<Model>{model, {.lr = 1e-4}}; }
  static auto batches() { return make_text(16, Batch, Sequence, C.vocabulary); }
};

}  // namespace bench
