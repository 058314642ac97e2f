// SPDX-License-Identifier: Apache-2.0
// decoder_autocast <compiled|traced|fused|eager> <threads>: the decoder `small` in autocast.

#include "decoder.hpp"

namespace {

struct mixed : bench::decoder_training<xla::nn::small_decoder, xla::optim::AdamW, 4, 128> {
  static constexpr auto step = xla::autocast(bench::decoder_step);
};

}  // namespace

int main(int argc, char** argv) { return bench::serve_training<mixed>(argc, argv); }
