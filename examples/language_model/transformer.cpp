// SPDX-License-Identifier: Apache-2.0
#include "trainer.hpp"

void run_transformer(const Options& o) {
  run_model<TransformerModel<false>, TransformerModel<true>>(o);
}
