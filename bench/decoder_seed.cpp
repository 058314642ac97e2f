// SPDX-License-Identifier: Apache-2.0
// The decoder of PyTorch/XLA's eager-mode benchmark, with 2 rows instead of 16.
#include "decoder.hpp"

int main(int argc, char** argv) {
  return bench::serve_training<
      bench::decoder_training<xla::nn::seed_decoder, xla::optim::Adam, 2, 512>>(argc, argv);
}
