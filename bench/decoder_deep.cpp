// SPDX-License-Identifier: Apache-2.0
// A decoder whose layers are called one by one or as a loop (layers.hpp); for scanned.py.
#include "decoder.hpp"
#include "layers.hpp"

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
