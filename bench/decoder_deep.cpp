// SPDX-License-Identifier: Apache-2.0
// A decoder of LAYERS layers, called one by one or, with SCAN_LAYERS, as a loop; for scanned.py.
#include "decoder.hpp"
#ifdef SCAN_LAYERS
#include <xla/loop/scan_layers.hpp>
#else
#define SCAN_LAYERS false
#endif
#ifndef LAYERS
#define LAYERS 2
#endif

inline constexpr xla::nn::DecoderConfig config{.hidden = 256,
                                               .layers = LAYERS,
                                               .heads = 4,
                                               .kv_heads = 2,
                                               .intermediate = 688,
                                               .vocabulary = 512,
                                               .scan_layers = SCAN_LAYERS};

int main(int argc, char** argv) {
  return bench::serve_training<bench::decoder_training<config, xla::optim::AdamW, 2, 64>>(argc,
                                                                                          argv);
}
