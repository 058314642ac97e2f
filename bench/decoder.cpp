// SPDX-License-Identifier: Apache-2.0
// decoder <compiled|traced|fused|eager> <threads>: the contestant of the part decoder, `small`.

#include "decoder.hpp"

int main(int argc, char** argv) {
  return bench::serve_training<
      bench::decoder_training<xla::nn::small_decoder, xla::optim::AdamW, 4, 128>>(argc, argv);
}
