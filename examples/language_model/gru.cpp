// SPDX-License-Identifier: Apache-2.0
#include "trainer.hpp"

void run_gru(const Options& o) { run_model<GruModel<false>, GruModel<true>>(o); }
