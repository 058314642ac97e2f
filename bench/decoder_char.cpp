// SPDX-License-Identifier: Apache-2.0
// decoder_char <compiled|traced|fused|eager> <threads>: nanoGPT's model for a processor, `char`.

#include "decoder.hpp"

int main(int argc, char** argv) {
  return bench::serve_training<
      bench::decoder_training<xla::nn::char_decoder, xla::optim::AdamW, 12, 64>>(argc, argv);
}
