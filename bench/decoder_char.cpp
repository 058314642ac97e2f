// SPDX-License-Identifier: Apache-2.0
#include "decoder.hpp"

int main(int argc, char** argv) {
  return bench::serve_decoder<xla::nn::char_decoder, xla::optim::AdamW>(argc, argv, 12, 64);
}
